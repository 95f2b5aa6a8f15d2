/** Pseudonyms of addresses, and the key that makes them. */

import { createHmac, hkdfSync } from "node:crypto";
import type { Secret } from "#lib/secret.ts";
import { addressBits, networkOf, readSentAddress } from "#model/ip-address.ts";

/** Replaces an erased address. */
export const ERASED = "erased";

/**
 * Prefix lengths by which addresses of one network still group together: a /24 of IPv4, and a /64 of IPv6, which is
 * one connection's.
 */
export const NETWORK_PREFIX = { 4: 24, 6: 64 } as const;
/** Characters of 5 bits each: 65 bits of the hash. */
const CHARS = 13;
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const FORM = /^anon-[a-z2-7]{13}-[a-z2-7]{13}$/;

export function isPseudonym(ip: string): boolean {
  return FORM.test(ip);
}

/** Returns whether the text identifies one machine: not empty, masked, a pseudonym or erased. */
export function isFullAddress(ip: string): boolean {
  return ip !== "" && ip !== ERASED && !ip.includes("*") && !isPseudonym(ip);
}

/**
 * Returns `anon-<network>-<address>`, each part 65 bits of a keyed hash. Equal addresses, and addresses of one
 * network, can still be seen to be equal, but only the key can reveal them. Text that is no address is hashed as it
 * is.
 */
export function toPseudonym(key: PseudonymKey, ip: string): string {
  const address = readSentAddress(ip);
  const network = address === null ? ip : networkOf(address, NETWORK_PREFIX[address.family]);
  const whole = address === null ? ip : networkOf(address, addressBits(address.family));
  return `anon-${networkPart(key, network)}-${addressPart(key, whole)}`;
}

/** Returns the network's part of a pseudonym. `network` is text of `networkOf`. */
export function networkPart(key: PseudonymKey, network: string): string {
  return toBase32(key.hash("network", network));
}

export function addressPart(key: PseudonymKey, address: string): string {
  return toBase32(key.hash("address", address));
}

/** Returns the parts of a text that `isPseudonym` accepts. */
export function splitPseudonym(pseudonym: string): { network: string; address: string } {
  const [, network = "", address = ""] = pseudonym.split("-");
  return { network, address };
}

/** Returns the first thirteen characters of the hash in base32 (RFC 4648), in lower case. */
function toBase32(hash: Buffer): string {
  let text = "";
  for (let char = 0; char < CHARS; char++) {
    const bit = 5 * char;
    const pair = hash.readUInt16BE(bit >> 3);
    text += ALPHABET[(pair >> (11 - (bit & 7))) & 31];
  }
  return text;
}

/** The purpose of a keyed hash. The same text has different hashes for different purposes. */
type Purpose = "address" | "network" | "tombstone" | "masked" | "content" | "fingerprint";

/** The key of pseudonyms and tombstones. Without the key neither can be traced to an address. */
export interface PseudonymKey {
  /** Identifies the key and reveals nothing about it. */
  readonly id: string;
  hash(purpose: Purpose, text: string | Buffer): Buffer;
}

const ID_CHARS = 16;

export function createPseudonymKey(secret: Secret): PseudonymKey {
  const key = Buffer.from(hkdfSync("sha256", secret.reveal(), "", "longwatch personal data", 32));
  const hash = (purpose: Purpose, text: string | Buffer) =>
    createHmac("sha256", key).update(`${purpose}\0`).update(text).digest();
  return { id: hash("fingerprint", "").toString("hex").slice(0, ID_CHARS), hash };
}
