import ipaddr from "ipaddr.js";
import type { AddressFamily } from "#model/kinds.ts";

/** An IPv4 or IPv6 address. An IPv4-mapped IPv6 address (`::ffff:203.0.113.7`) counts as the IPv4 address. */
export interface IpAddress {
  readonly family: AddressFamily;
  readonly bytes: readonly number[];
}

/** Returns the address, or null for any other text: masked, a name, hostile text. */
export function readAddress(text: string): IpAddress | null {
  const trimmed = text.trim();
  // The library would also accept `1`, `0x7f.1` and `1.2`.
  if (trimmed.length > 45 || !(trimmed.includes(":") || ipaddr.IPv4.isValidFourPartDecimal(trimmed)))
    return null;
  if (PLAIN_IPV6.test(trimmed)) return readPlainIpv6(trimmed);
  if (!ipaddr.isValid(trimmed)) return null;
  const address = ipaddr.process(trimmed);
  return { family: address.kind() === "ipv4" ? 4 : 6, bytes: address.toByteArray() };
}

/**
 * Matches groups and colons only. The library takes ten times as long, and hostile text may hold thousands of such
 * readings.
 */
const PLAIN_IPV6 = /^[0-9a-f:]+$/i;
const GROUPS = 8;
/** `::ffff:0:0/96` as groups. */
const MAPPED = [0, 0, 0, 0, 0, 0xffff];

function readPlainIpv6(text: string): IpAddress | null {
  const [head = "", tail, more] = text.split("::");
  if (more !== undefined) return null;
  const before = readGroups(head);
  const after = tail === undefined ? [] : readGroups(tail);
  if (before === null || after === null) return null;
  const missing = GROUPS - before.length - after.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const groups = [...before, ...Array<number>(missing).fill(0), ...after];
  const bytes = groups.flatMap((group) => [group >> 8, group & 0xff]);
  const isMapped = MAPPED.every((group, index) => groups[index] === group);
  return isMapped ? { family: 4, bytes: bytes.slice(12) } : { family: 6, bytes };
}

/** Returns null if a group is empty or too long. */
function readGroups(text: string): number[] | null {
  if (text === "") return [];
  const groups: number[] = [];
  for (const group of text.split(":")) {
    if (group.length === 0 || group.length > 4) return null;
    groups.push(Number.parseInt(group, 16));
  }
  return groups;
}

export function addressBits(family: AddressFamily): number {
  return family === 4 ? 32 : 128;
}

/** Returns the network of an address as text that is the same for all of its addresses: `4/24/203.0.113.0`. */
export function networkOf({ family, bytes }: IpAddress, prefix: number): string {
  const masked = bytes.map((byte, index) => {
    const bits = Math.max(0, Math.min(8, prefix - 8 * index));
    return byte & (0xff << (8 - bits)) & 0xff;
  });
  return `${family}/${prefix}/${ipaddr.fromByteArray([...masked]).toNormalizedString()}`;
}

/**
 * Returns the first address that a masked IPv4 address (`203.0.113.*`, the platform's form) may stand for; null for
 * any other text.
 */
export function readMasked(text: string): IpAddress | null {
  const [, network] = /^((?:\d{1,3}\.){3})\*$/.exec(text.trim()) ?? [];
  return network === undefined ? null : readAddress(`${network}0`);
}
