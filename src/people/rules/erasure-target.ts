import ipaddr from "ipaddr.js";
import {
  addressBits,
  type IpAddress,
  networkOf,
  readAddress,
  readMasked,
  readSentAddress,
} from "#model/ip-address.ts";
import type { AddressFamily } from "#model/kinds.ts";
import {
  addressPart,
  isPseudonym,
  NETWORK_PREFIX,
  networkPart,
  type PseudonymKey,
  splitPseudonym,
} from "./pseudonym.ts";

/** An address or a network. */
export interface Network {
  readonly address: IpAddress;
  readonly prefix: number;
}

/** At most 2 to this power pseudonyms are computed for a comparison. */
const MAX_PSEUDONYM_BITS = 16;
export const NETWORK_RULE =
  "a network such as 203.0.113.0/24: IPv4 from /8 on, IPv6 from /48 to /64 or from /112 on";

/** Returns the network, or null for any other text. Bits after the prefix are ignored. */
export function readNetwork(text: string): Network | null {
  const [, base = "", length = ""] = /^([^/]*)\/(\d{1,3})$/.exec(text.trim()) ?? [];
  const address = readAddress(base);
  // An IPv4-mapped IPv6 network has a prefix that does not fit the IPv4 address.
  if (address === null || (base.includes(":") && ipaddr.parse(base.trim()).kind() !== `ipv${address.family}`))
    return null;
  const prefix = Number(length);
  return isCovered(address.family, prefix) ? { address, prefix } : null;
}

export function singleAddress(text: string): Network | null {
  const address = readSentAddress(text);
  return address === null ? null : { address, prefix: addressBits(address.family) };
}

/**
 * Returns whether the prefix is supported. Wider networks, and prefixes between a pseudonym's network and a few
 * addresses, cannot be found among pseudonyms.
 */
function isCovered(family: AddressFamily, prefix: number): boolean {
  const network = NETWORK_PREFIX[family];
  if (prefix > addressBits(family)) return false;
  const wanted = prefix <= network ? network - prefix : addressBits(family) - prefix;
  return wanted <= MAX_PSEUDONYM_BITS;
}

export interface ErasureTarget {
  readonly family: AddressFamily;
  readonly prefix: number;
  readonly hash: Buffer;
  readonly masked: { readonly prefix: number; readonly hash: Buffer } | null;
  /** Returns whether an event's address belongs to the target: full, masked or as a pseudonym. */
  readonly covers: (ip: string) => boolean;
  /**
   * Returns whether a text is the IPv6 network of 64 bits, written as its first address, that holds the target. The
   * source series name a sender by it.
   */
  readonly isSenderOf: (network: string) => boolean;
  /** Returns whether a masked address may stand for one of the target, even if `includeMasked` is not set. */
  readonly mayBeMasked: (ip: string) => boolean;
}

/** Returns the target. `includeMasked`: masked addresses that may stand for one of the network are included. */
export function createErasureTarget(
  key: PseudonymKey,
  { address, prefix }: Network,
  { includeMasked }: { readonly includeMasked: boolean },
): ErasureTarget {
  const { family } = address;
  const wanted = networkOf(address, prefix);
  const maskedPrefix = Math.min(prefix, NETWORK_PREFIX[4]);
  const wantedMasked = family === 4 ? networkOf(address, maskedPrefix) : null;
  const isPseudonymMeant = findPseudonyms(key, { address, prefix });
  const mayBeMasked = (ip: string) => {
    const masked = readMasked(ip);
    return masked !== null && networkOf(masked, maskedPrefix) === wantedMasked;
  };
  const sender = family === 6 && prefix > NETWORK_PREFIX[6] ? networkOf(address, NETWORK_PREFIX[6]) : null;
  return {
    family,
    prefix,
    isSenderOf: (network) => sender !== null && readSender(network) === sender,
    hash: key.hash("tombstone", wanted),
    masked:
      includeMasked && wantedMasked !== null
        ? { prefix: maskedPrefix, hash: key.hash("masked", wantedMasked) }
        : null,
    mayBeMasked,
    covers(ip) {
      if (isPseudonym(ip)) return isPseudonymMeant(ip);
      const given = readSentAddress(ip);
      if (given !== null) return given.family === family && networkOf(given, prefix) === wanted;
      return includeMasked && mayBeMasked(ip);
    },
  };
}

/** Returns the network of 64 bits that a text names by its first address; null for any other text. */
export function readSender(text: string): string | null {
  const address = readAddress(text);
  const isFirst = address?.family === 6 && address.bytes.slice(8).every((byte) => byte === 0);
  return isFirst ? networkOf(address, NETWORK_PREFIX[6]) : null;
}

/**
 * Returns a test for the pseudonyms that this key made of the network: by network for a wide one, by address
 * otherwise.
 */
function findPseudonyms(key: PseudonymKey, { address, prefix }: Network): (ip: string) => boolean {
  const { family } = address;
  const isWide = prefix <= NETWORK_PREFIX[family];
  const length = isWide ? NETWORK_PREFIX[family] : addressBits(family);
  const toPart = isWide ? networkPart : addressPart;
  const parts = new Set<string>();
  for (const one of eachNetwork(address, prefix, length)) parts.add(toPart(key, networkOf(one, length)));
  return (ip) => {
    const pseudonym = splitPseudonym(ip);
    return parts.has(isWide ? pseudonym.network : pseudonym.address);
  };
}

/** Returns the networks of `length` bits within the one of `prefix` bits, by their first addresses. */
function* eachNetwork({ family, bytes }: IpAddress, prefix: number, length: number): Generator<IpAddress> {
  const shift = BigInt(addressBits(family) - length);
  const bits = BigInt(addressBits(family) - prefix);
  const given = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  const first = (given >> bits) << bits;
  for (let index = 0n; index < 1n << (bits - shift); index++) {
    const hex = (first + (index << shift)).toString(16).padStart(2 * bytes.length, "0");
    yield { family, bytes: [...Buffer.from(hex, "hex")] };
  }
}
