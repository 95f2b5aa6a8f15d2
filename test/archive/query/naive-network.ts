import ipaddr from "ipaddr.js";

interface Network {
  readonly bits: 32 | 128;
  readonly address: bigint;
  readonly prefix: number;
}

/** Returns the network of an address, full or masked; null for any other text. */
function readAddress(text: string): Network | null {
  const octets = text.split(".");
  if (octets.length === 4 && !text.includes(":")) return readOctets(octets);
  if (!/^[0-9a-f:.*]+$/i.test(text) || !text.includes(":")) return null;
  const shown = /^((?:[0-9a-f]{1,4}:)*[0-9a-f]{1,4}):?(?::\*)+$/i.exec(text)?.[1];
  if (shown !== undefined) {
    const groups = shown.split(":");
    if (groups.length > 7) return null;
    const address = groups.reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n);
    return { bits: 128, address: address << BigInt(128 - 16 * groups.length), prefix: 16 * groups.length };
  }
  return ipaddr.isValid(text)
    ? { bits: 128, address: toNumber(ipaddr.parse(text).toByteArray()), prefix: 128 }
    : null;
}

function readOctets(octets: readonly string[]): Network | null {
  const shown = octets.filter((octet) => octet !== "*");
  const isMaskedBehind = octets.slice(0, shown.length).every((octet) => octet !== "*");
  if (shown.length < 2 || !isMaskedBehind) return null;
  if (!shown.every((octet) => /^(0|[1-9]\d{0,2})$/.test(octet) && Number(octet) < 256)) return null;
  const bytes = octets.map((octet) => (octet === "*" ? 0 : Number(octet)));
  return { bits: 32, address: toNumber(bytes), prefix: 8 * shown.length };
}

function toNumber(bytes: readonly number[]): bigint {
  return bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
}

/** A text that was stored before addresses had one spelling, without port, brackets, list and the mapped form. */
function undress(text: string): string {
  if (!text.includes(",") && !(text.includes(":") && /[.[]/.test(text))) return text;
  const [first = ""] = text.split(",", 1);
  const shown = first.trim().toLowerCase();
  const [, ipv6, ipv4] = /^(?:\[(.*)\](?::\d+)?|([\d.]+):\d+)$/.exec(shown) ?? [];
  return (ipv6 ?? ipv4 ?? shown).replace(/^::ffff:(?=\d+\.)/, "");
}

/** Whether an address is one of those that are asked for, in whatever form either is written. */
export function isSameAddress(text: string, asked: readonly string[]): boolean {
  const wanted = asked.flatMap((one) => [one, undress(one) || one]);
  return wanted.includes(text) || wanted.includes(undress(text));
}

/** Whether all that a text of an address leaves open lies in a network. */
export function isWithin(text: string, network: string): boolean {
  return [text, undress(text)].some((written) => isInside(written, network));
}

function isInside(text: string, network: string): boolean {
  const inner = readAddress(text);
  let [address, length] = ipaddr.isValidCIDR(network)
    ? ipaddr.parseCIDR(network)
    : [ipaddr.parse(network), null];
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && (length ?? 128) >= 96) {
    address = address.toIPv4Address();
    length = length === null ? null : length - 96;
  }
  const bytes = address.toByteArray();
  const prefix = length ?? 8 * bytes.length;
  if (inner === null || inner.bits !== 8 * bytes.length || inner.prefix < prefix) return false;
  const shift = BigInt(inner.bits - prefix);
  return inner.address >> shift === toNumber(bytes) >> shift;
}
