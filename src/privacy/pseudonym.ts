import { addressBits, networkOf, readAddress } from "./ip-address.ts";
import type { PseudonymKey } from "./pseudonym-key.ts";

/** What stands where an erased address stood. */
export const ERASED = "erased";

/** Addresses of one network still group together: a /24 of IPv4, a /64 of IPv6, which is one connection's. */
export const NETWORK_PREFIX = { 4: 24, 6: 64 } as const;
/** Of 5 bits each: 65 bits, of which the hash fills 65. */
const CHARS = 13;
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const FORM = /^anon-[a-z2-7]{13}-[a-z2-7]{13}$/;

export function isPseudonym(ip: string): boolean {
  return FORM.test(ip);
}

/** Whether the text names one machine: not empty, masked, a pseudonym or erased. */
export function isFullAddress(ip: string): boolean {
  return ip !== "" && ip !== ERASED && !ip.includes("*") && !isPseudonym(ip);
}

/**
 * `anon-<network>-<address>`, each part 65 bits of a keyed hash: equal addresses, and addresses of one network, are still
 * seen to be equal, and nobody without the key can tell which they were. Text that is no address is taken as it is.
 */
export function toPseudonym(key: PseudonymKey, ip: string): string {
  const address = readAddress(ip);
  const network = address === null ? ip : networkOf(address, NETWORK_PREFIX[address.family]);
  const whole = address === null ? ip : networkOf(address, addressBits(address.family));
  return `anon-${networkPart(key, network)}-${addressPart(key, whole)}`;
}

/** The parts of a pseudonym; their texts as `networkOf` writes them. */
export function networkPart(key: PseudonymKey, network: string): string {
  return toBase32(key.hash("network", network));
}

export function addressPart(key: PseudonymKey, address: string): string {
  return toBase32(key.hash("address", address));
}

/** The parts of what `isPseudonym` takes. */
export function splitPseudonym(pseudonym: string): { network: string; address: string } {
  const [, network = "", address = ""] = pseudonym.split("-");
  return { network, address };
}

/** RFC 4648 in lower case, the first thirteen characters. */
function toBase32(hash: Buffer): string {
  let text = "";
  for (let char = 0; char < CHARS; char++) {
    const bit = 5 * char;
    const pair = hash.readUInt16BE(bit >> 3);
    text += ALPHABET[(pair >> (11 - (bit & 7))) & 31];
  }
  return text;
}
