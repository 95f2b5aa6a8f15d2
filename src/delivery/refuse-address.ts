import ipaddr from "ipaddr.js";

const PRIVATE = new Set<string>(["private", "loopback", "uniqueLocal", "carrierGradeNat"]);
/** Instance metadata and platform agents of the large clouds: credentials live there, so no setting admits them. */
const METADATA = new Set([
  "169.254.169.254",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd00:ec2::23",
  "fd20:ce::254",
]);

/**
 * The class for which an address is refused ("loopback", "metadata", ...), or null where it may be connected to. Only
 * global unicast may. Addresses that carry another inside (mapped, 6to4, Teredo, NAT64) are refused as such; where
 * private networks are allowed, mapped and NAT64 are judged by the address inside.
 */
export function refuseAddress(address: string, allowPrivateNetworks: boolean): string | null {
  const bare = address.replace(/%.*$/s, "");
  if (!ipaddr.isValid(bare)) return "not an address";
  const parsed = ipaddr.parse(bare);
  const range: string = parsed.range();
  if (METADATA.has(parsed.toString())) return "metadata";
  if (allowPrivateNetworks && PRIVATE.has(range)) return null;
  if (parsed instanceof ipaddr.IPv4) return range === "unicast" ? null : range;
  if (allowPrivateNetworks && (range === "ipv4Mapped" || range === "rfc6052")) {
    return refuseAddress(parsed.toByteArray().slice(-4).join("."), true);
  }
  if (range !== "unicast") return range;
  // Of IPv6 only 2000::/3 is handed out; what lies outside, such as ::a.b.c.d, is no one's public address.
  return ((parsed.parts[0] ?? 0) & 0xe000) === 0x2000 ? null : "not global";
}

/** The same for a name that leads to loopback on every machine: `localhost` and the names below it (RFC 6761). */
export function refuseLocalName(host: string, allowPrivateNetworks: boolean): string | null {
  return !allowPrivateNetworks && /(?:^|\.)localhost\.?$/i.test(host) ? "loopback" : null;
}

/** The same for the host of a URL, in any notation of an address; null also for a name, which is judged once resolved. */
export function refuseHost(host: string, allowPrivateNetworks: boolean): string | null {
  const bare = host.replace(/^\[(.*)\]$/s, "$1").replace(/\.$/, "");
  return ipaddr.isValid(bare) ? refuseAddress(bare, allowPrivateNetworks) : null;
}
