import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** The first bytes of `::ffff:0:0/96`. */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/**
 * Returns an IPv4 or IPv6 network, or an address as a network of its own, in the one form that Postgres reads as
 * `cidr` (no bit set after the prefix). Returns null for every other text, including those that some programs read as
 * octal (`010.0.0.0/8`) or fill up in the middle (`10.1/16`), because their author meant another network than the one
 * that would be found.
 */
export function toNetwork(text: string): string | null {
  const [address = ""] = text.split("/", 1);
  if (isIP(address) === 0) return null;
  if (ipaddr.isValidCIDR(text)) {
    const [address, bits] = ipaddr.parseCIDR(text);
    return writeNetwork(address.toByteArray(), bits);
  }
  if (!ipaddr.isValid(text)) return null;
  const bytes = ipaddr.parse(text).toByteArray();
  return writeNetwork(bytes, 8 * bytes.length);
}

/** An IPv4-mapped network is the IPv4 network, as its addresses are in the column `ip`. */
function writeNetwork(given: readonly number[], givenBits: number): string {
  const isMapped = givenBits >= 96 && given.slice(0, 12).every((byte, index) => byte === MAPPED[index]);
  const [bytes, bits] = isMapped ? [given.slice(12), givenBits - 96] : [given, givenBits];
  const masked = bytes.map((byte, index) => {
    const kept = Math.min(Math.max(bits - 8 * index, 0), 8);
    return byte & (0xff << (8 - kept));
  });
  // A byte array has no zone index (`fe80::1%eth0`), which Postgres would refuse.
  return `${ipaddr.fromByteArray(masked.map((byte) => byte & 0xff)).toNormalizedString()}/${bits}`;
}
