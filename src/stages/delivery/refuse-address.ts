import ipaddr from "ipaddr.js";

const PRIVATE = new Set<string>(["private", "loopback", "uniqueLocal", "carrierGradeNat"]);
/** Instance metadata and platform agents of the large clouds. They serve credentials, so no setting allows them. */
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
 * Returns the class for which an address is refused ("loopback", "metadata", ...), or null if connecting is allowed.
 * Only global unicast is allowed. Addresses that contain another one (mapped, 6to4, Teredo, NAT64) are refused as such;
 * if private networks are allowed, mapped and NAT64 addresses are judged by the address inside.
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
  // Only 2000::/3 is assigned to public IPv6; addresses outside, such as ::a.b.c.d, are not public.
  return ((parsed.parts[0] ?? 0) & 0xe000) === 0x2000 ? null : "not global";
}

/** Returns the same for a name that means loopback on every machine: `localhost` and the names below it (RFC 6761). */
export function refuseLocalName(host: string, allowPrivateNetworks: boolean): string | null {
  return !allowPrivateNetworks && /(?:^|\.)localhost\.?$/i.test(host) ? "loopback" : null;
}

/**
 * Returns the same for the host of a URL, in any notation of an address. Null also for a name, which is judged when it
 * is resolved.
 */
export function refuseHost(host: string, allowPrivateNetworks: boolean): string | null {
  const bare = host.replace(/^\[(.*)\]$/s, "$1").replace(/\.$/, "");
  return ipaddr.isValid(bare) ? refuseAddress(bare, allowPrivateNetworks) : null;
}
