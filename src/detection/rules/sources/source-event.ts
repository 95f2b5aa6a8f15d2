import { ownText } from "#lib/text.ts";
import { readSentAddress } from "#model/ip-address.ts";
import type { SourceKind } from "#model/kinds.ts";

/** The fields of an event that the source series read. Hostile text; an unknown or empty value is null or ''. */
export interface SourceEvent {
  readonly ruleId: string | null;
  readonly ip: string | null;
  readonly asn: string | null;
  readonly ja4: string | null;
  readonly ua: string | null;
  readonly url: string | null;
}

const MAX_CHARS = 300;
/** Returns whether a text is neither IPv6 nor an address with a port or in a list, so that it is its own name. */
const isWritten = (ip: string) => !ip.includes(":") && !ip.includes(",");

/**
 * Returns the address by which an event's sender is counted. A provider gives each customer an IPv6 network of 64
 * bits, so all addresses of one count as one. A masked address is kept as it is and counts as one sender.
 */
export function toSourceAddress(ip: string): string {
  if (isWritten(ip)) return ip.slice(0, MAX_CHARS);
  const text = ip.slice(0, MAX_CHARS).toLowerCase();
  const address = readSentAddress(text);
  if (address === null) return text;
  const { family, bytes } = address;
  if (family === 4) return bytes.join(".");
  const groups = [0, 2, 4, 6].map((at) => (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16));
  return `${groups.join(":")}::/64`;
}

/** How many addresses are remembered. Reading an IPv6 address costs more than all counting. */
const MAX_REMEMBERED = 20_000;

/** Returns `toSourceAddress`, which remembers what it has read. */
export function createAddressReader(): (ip: string) => string {
  const known = new Map<string, string>();
  return (ip) => {
    if (isWritten(ip)) return ip.slice(0, MAX_CHARS);
    const before = known.get(ip);
    if (before !== undefined) return before;
    if (known.size >= MAX_REMEMBERED) known.clear();
    const address = toSourceAddress(ip);
    known.set(ownText(ip), address);
    return address;
  };
}

const HOST = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]*/;
const [HASH, SLASH, QUESTION] = [0x23, 0x2f, 0x3f];

/** Returns the path of a URL without scheme, host, query and fragment, because an attack mostly varies the query. */
export function toSourcePath(url: string): string {
  const from = startOfPath(url);
  const to = endOf(url, from, Math.min(from + MAX_CHARS, url.length), false);
  const path = url.slice(from, to);
  return path === "" && url !== "" ? "/" : path;
}

function startOfPath(url: string): number {
  if (url.startsWith("/")) return 0;
  if (url.startsWith("https://")) return endOf(url, "https://".length, url.length, true);
  return HOST.exec(url)?.[0].length ?? 0;
}

/** Returns where a host or a path ends: at a query, a fragment or `limit`, and a host at its path. */
function endOf(url: string, from: number, limit: number, isHost: boolean): number {
  for (let at = from; at < limit; at += 1) {
    const code = url.charCodeAt(at);
    if (code === QUESTION || code === HASH || (isHost && code === SLASH)) return at;
  }
  return limit;
}

export function toSourceKey(text: string | null): string {
  return text === null ? "" : text.slice(0, MAX_CHARS);
}

const KEY_OF: Readonly<Record<SourceKind, (event: SourceEvent) => string>> = {
  rules_per_ip: ({ ip }) => (ip === null ? "" : toSourceAddress(ip)),
  ips_per_ja4: ({ ja4 }) => toSourceKey(ja4),
  ips_per_url: ({ url }) => (url === null ? "" : toSourcePath(url)),
  ips_per_ua: ({ ua }) => toSourceKey(ua),
  ips_per_asn: ({ asn }) => toSourceKey(asn),
};

/** Returns the key under which a series counts the event; '' if the event has none. */
export function sourceKeyOf(kind: SourceKind, event: SourceEvent): string {
  return KEY_OF[kind](event);
}
