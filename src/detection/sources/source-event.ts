import ipaddr from "ipaddr.js";

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
const HOST = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]*/;

/**
 * Returns the address by which an event's sender is counted. A provider gives each customer an IPv6 network of 64
 * bits, so all addresses of one count as one. A masked address is kept as it is and counts as one sender.
 */
export function toSourceAddress(ip: string): string {
  if (!ip.includes(":")) return ip.slice(0, MAX_CHARS);
  const text = ip.slice(0, MAX_CHARS).toLowerCase();
  if (!ipaddr.IPv6.isValid(text)) return text;
  const address = ipaddr.IPv6.parse(text);
  if (address.isIPv4MappedAddress()) return address.toIPv4Address().toString();
  const network = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}

/** Returns the path of a URL without scheme, host, query and fragment, because an attack mostly varies the query. */
export function toSourcePath(url: string): string {
  const local = url.startsWith("/") ? url : url.replace(HOST, "");
  const end = local.search(/[?#]/);
  const path = (end < 0 ? local : local.slice(0, end)).slice(0, MAX_CHARS);
  return path === "" && url !== "" ? "/" : path;
}

export function toSourceKey(text: string | null): string {
  return text === null ? "" : text.slice(0, MAX_CHARS);
}
