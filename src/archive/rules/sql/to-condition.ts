/** A search as a condition of DuckDB. */
import { clampTime } from "#lib/units.ts";
import { toFileColumnSql } from "#model/archive-layout.ts";
import { ZONE_COLUMN } from "#model/fields.ts";
import type { Span } from "#model/horizon.ts";
import {
  type AddressTest,
  connectives,
  type EventQuery,
  type LikeTest,
  toCondition,
} from "#model/search-condition.ts";

/**
 * A piece of SQL for DuckDB. Every text of a caller is a value: `values` has them in the order of the `?` in `sql`. The
 * constants of this folder contain a `?` within quotes only.
 */
export interface Piece {
  readonly sql: string;
  readonly values: readonly string[];
}

/** A text that the statement contains as a parameter. */
export function bound(text: string): Piece {
  return { sql: "?", values: [text] };
}

/** A constant of this program, such as a column. */
export function raw(sql: string): Piece {
  return { sql, values: [] };
}

/** Joins a template and its pieces. A number is written as it is. */
export function duck(template: TemplateStringsArray, ...parts: readonly (Piece | number)[]): Piece {
  const pieces = parts.map((part) => (typeof part === "number" ? raw(writeInteger(part)) : part));
  return {
    sql: template.reduce((sql, text, index) => `${sql}${pieces[index - 1]?.sql ?? ""}${text}`),
    values: pieces.flatMap(({ values }) => values),
  };
}

export function join(pieces: readonly Piece[], separator: string): Piece {
  return {
    sql: pieces.map(({ sql }) => sql).join(separator),
    values: pieces.flatMap(({ values }) => values),
  };
}

const { and, or } = connectives(raw, join);

function writeInteger(value: number): string {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is not a whole number`);
  return String(value);
}

/** DuckDB's `lower` makes these an ASCII `k` and `i`. `foldCase` leaves them as they are. */
const KELVIN = "\u212A";
const DOTTED_I = "\u0130";
/** Noncharacters, of which one that the needle does not contain stands for each of the two. */
const STAND_INS = ["\uFDD0", "\uFDD1", "\uFDD2", "\uFDD3"];

/** Returns the condition for events of a span. Files are ordered by time, so it decides what is read of them. */
export function toTimeCondition({ from, to }: Span): Piece {
  const moment = (ms: number) => raw(`to_timestamp(${clampTime(ms)} / 1000.0)`);
  return duck`occurred_at >= ${moment(from)} and occurred_at < ${moment(to)}`;
}

/** Returns the condition for events of files of a version that pass every clause. A null counts as ''. */
export function toClauses({ clauses }: Pick<EventQuery, "clauses">, format: number): Piece {
  return toCondition(clauses, {
    raw,
    and,
    or,
    mayBeOlder,
    toText: (column) => (column === ZONE_COLUMN ? `${column}::varchar` : toFileColumnSql(column, format)),
    isNot: (condition) => duck`${condition} is not true`,
    isOneOf: (text, texts) => duck`${raw(text)} in (${join(texts.map(bound), ", ")})`,
    isLike: (text, test) =>
      test.kind === "like" ? toLike(text, test) : or(test.likes.map((like) => toLike(text, like))),
    isWithin: (text, { networks }) => isWithinAny(text, networks),
  });
}

/** With more addresses or networks than this, one look at the spelling costs less. */
const FEW = 4;

/**
 * Returns what every older spelling of the addresses passes, and few others: it holds the address. That of an IPv4 address or network
 * begins with its octets, or with no digit, which costs least to compare. That of an IPv6 address is longer.
 */
function mayBeOlder(column: string, test: AddressTest): Piece[] {
  if (test.kind === "withinAny") return [];
  const asked = test.kind === "equals" ? test.texts : test.networks;
  if (asked.length > FEW) return [];
  const begins = test.kind === "equals" ? asked : asked.map(toWholeOctets);
  if (begins.every((text) => /^[0-9.]+$/.test(text))) {
    const begin = begins.map((text) => duck`${raw(column)} between ${bound(text)} and ${bound(`${text}~`)}`);
    const holds = begins.map((text) => duck`contains(${raw(column)}, ${bound(text)})`);
    return [or([raw(`${column} < '0' or ${column} >= ':'`), ...begin]), or(holds)];
  }
  if (test.kind !== "equals") return [];
  return [
    or(
      asked.map(
        (text) =>
          duck`strlen(${raw(column)}) > ${Buffer.byteLength(text)} and contains(lower(${raw(column)}), ${bound(text)})`,
      ),
    ),
  ];
}

/** Returns the octets of an IPv4 network that all of its addresses have, each with its dot; empty for IPv6. */
function toWholeOctets(network: string): string {
  const [address = "", length = ""] = network.split("/");
  const octets = address.split(".").slice(0, Math.min(3, Math.floor(Number(length) / 8)));
  return address.includes(":") ? "" : octets.map((octet) => `${octet}.`).join("");
}

/**
 * `lower` alone is fast, because it is computed once for each text of a file's dictionary. What it folds too much is
 * looked at again, exactly, in the few texts that it finds.
 */
function toLike(column: string, like: LikeTest): Piece {
  const needle = like.literals.join("");
  const [kelvin = "", dotted = ""] = STAND_INS.filter((one) => !needle.includes(one));
  const standIn = (text: string) => text.replaceAll(KELVIN, kelvin).replaceAll(DOTTED_I, dotted);
  const isExact = () =>
    matches(
      fold(raw(`lower(translate(${column}, '${KELVIN}${DOTTED_I}', '${kelvin}${dotted}'))`), like),
      like.literals.map(standIn),
    );
  if (standIn(needle) !== needle) return isExact();
  const isFound = matches(fold(raw(`lower(${column})`), like), like.literals);
  if (!/[ki]/.test(needle)) return isFound;
  const isPlain = raw(`not contains(${column}, '${KELVIN}') and not contains(${column}, '${DOTTED_I}')`);
  return duck`(${isFound} and (${isPlain} or ${isExact()}))`;
}

/** DuckDB knows no final sigma, and not the newest letters. */
function fold(lower: Piece, { foldFrom, foldTo }: LikeTest): Piece {
  return foldFrom === "" ? lower : duck`translate(${lower}, ${bound(foldFrom)}, ${bound(foldTo)})`;
}

/** Between the literals any text may be. Most tests need no pattern. */
function matches(text: Piece, literals: readonly string[]): Piece {
  const [first = "", second = "", third = ""] = literals;
  if (literals.length === 1) return duck`${text} = ${bound(first)}`;
  if (literals.length === 2 && second === "") return duck`starts_with(${text}, ${bound(first)})`;
  if (literals.length === 2 && first === "") return duck`suffix(${text}, ${bound(second)})`;
  if (literals.length === 3 && first === "" && third === "") return duck`contains(${text}, ${bound(second)})`;
  // Linear in the text, whatever a client asks and an attacker has sent. DuckDB's LIKE tries every place of every
  // literal, and cannot be interrupted meanwhile.
  const pattern = literals
    .map((literal) => literal.replaceAll(/[\\^$.|?*+()[\]{}]/g, String.raw`\$&`))
    .join(".*");
  // Rules out most texts for a fraction of the cost.
  const longest = literals.reduce((most, one) => (one.length > most.length ? one : most));
  return duck`(contains(${text}, ${bound(longest)}) and regexp_full_match(${text}, ${bound(pattern)}, 's'))`;
}

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
function isWithinAny(column: string, networks: readonly string[]): Piece {
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
