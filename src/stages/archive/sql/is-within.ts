import { and, bound, duck, or, type Piece, raw } from "./piece.ts";

const OCTET = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`;
const IPV6 = [
  "(?:G:){7}G|(?:G:){1,7}:|:(?::G){1,7}|::",
  ...[1, 2, 3, 4, 5].map((behind) => `(?:G:){1,${7 - behind}}(?::G){1,${behind}}`),
  `G:(?::G){1,6}`,
  String.raw`::(?:ffff:)?O(?:\.O){3}`,
]
  .join("|")
  .replaceAll("G", "[0-9a-f]{1,4}")
  .replaceAll("O", OCTET);
/** An address of which the platform shows the first groups: 2001:db8:1:*. */
const MASKED_IPV6 = String.raw`[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6}:?(?::\*)+`;

/**
 * Returns the condition for addresses of any of these networks, as `event_network` of Postgres reads them: a masked
 * address is inside if all addresses are that it may stand for. A network is a result of `toNetwork`.
 */
export function isWithinAny(column: string, networks: readonly string[]): Piece {
  const read = networks.map((network) => {
    const [address = "", length = ""] = network.split("/");
    return { address, bits: Number(length), isIpv6: address.includes(":") };
  });
  const ipv6 = read.filter(({ isIpv6 }) => isIpv6);
  return or([
    ...read.filter(({ isIpv6 }) => !isIpv6).map(({ address, bits }) => isWithinIpv4(column, address, bits)),
    ...(ipv6.length > 0 ? [isWithinIpv6(column, ipv6)] : []),
  ]);
}

function isWithinIpv4(column: string, address: string, bits: number): Piece {
  const octets = address.split(".");
  if (bits === 32) return duck`${raw(column)} = ${bound(address)}`;
  const whole = Math.floor(bits / 8);
  const places = octets.map((octet, index) => {
    if (index < whole) return octet;
    const first = Number(octet);
    const free = 8 * (index + 1) - bits;
    if (index > whole || free === 8) return OCTET;
    return `(?:${Array.from({ length: 2 ** free }, (_, more) => first + more).join("|")})`;
  });
  const [one, two, three, four] = places;
  const needed = Math.ceil(bits / 8);
  const last = needed === 4 ? four : String.raw`(?:\*|${four})`;
  const rest = String.raw`${three}\.${last}`;
  const pattern = String.raw`${one}\.${two}\.${needed > 2 ? rest : String.raw`(?:\*\.\*|${rest})`}`;
  const isInside = duck`regexp_full_match(${raw(column)}, ${bound(pattern)})`;
  if (whole === 0) return isInside;
  // Rules out most addresses for a fraction of the cost.
  return and([duck`starts_with(${raw(column)}, ${bound(`${octets.slice(0, whole).join(".")}.`)})`, isInside]);
}

/** Reads the address once for all networks: reading costs a hundred times what comparing costs. */
function isWithinIpv6(
  column: string,
  networks: readonly { readonly address: string; readonly bits: number }[],
): Piece {
  const hex = (number: bigint) => bound(number.toString(16).padStart(32, "0"));
  const isInside = networks.map(({ address, bits }) => {
    const value = address.split(":").reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n);
    const last = value + 2n ** BigInt(128 - bits) - 1n;
    return duck`(a.bits >= ${bits} and a.hex between ${hex(value)} and ${hex(last)})`;
  });
  const lower = raw(`lower(${column})`);
  const known = raw(groupsOf(withoutMask(column), 1));
  const bits = duck`case when regexp_full_match(${lower}, ${bound(IPV6)}) then 128
    when regexp_full_match(${lower}, ${bound(MASKED_IPV6)}) then 4 * length(${known}) else -1 end`;
  return and([
    duck`contains(${raw(column)}, ':')`,
    duck`list_transform([{'hex': ${raw(toHex(column))}, 'bits': ${bits}}], lambda a: ${or(isInside)})[1]`,
  ]);
}

/** Returns SQL for the 32 hexadecimal digits of an IPv6 address; the groups that a mask hides are zeros. */
function toHex(column: string): string {
  const shown = withoutMask(column);
  const [before, behind] = [groupsOf(shown, 1), groupsOf(shown, 2)];
  return `(${before} || repeat('0', 32 - length(${before}) - length(${behind})) || ${behind})`;
}

function withoutMask(column: string): string {
  return `regexp_replace(lower(${column}), ':?(:\\*)+$', '')`;
}

/** The groups before (1) or behind (2) a double colon, four digits each, and those of an IPv4 address at the end. */
function groupsOf(text: string, side: 1 | 2): string {
  const octet = (index: number) => `try_cast(split_part(g, '.', ${index}) as integer)`;
  const digits = `case when contains(g, '.') then printf('%02x%02x%02x%02x', ${octet(1)}, ${octet(2)}, ${octet(3)}, ${octet(4)})
    when g = '' then '' else lpad(g, 4, '0') end`;
  return `array_to_string(list_transform(string_split(split_part(${text}, '::', ${side}), ':'), lambda g: ${digits}), '')`;
}
