import { networkOf, readMasked, readSentAddress } from "#model/ip-address.ts";
import type { PseudonymKey } from "./pseudonym-key.ts";

/** The record that an erasure leaves; times in epoch ms. */
export interface Tombstone {
  readonly untilAt: number;
  readonly family: number;
  readonly prefix: number;
  readonly hash: Buffer;
  readonly maskedHash: Buffer | null;
  readonly maskedPrefix: number | null;
}

/**
 * Returns until when the events of an address are erased, or null if no tombstone covers it. Computes one keyed hash
 * for each prefix length among the tombstones.
 */
export function matchTombstones(
  key: PseudonymKey,
  tombstones: readonly Tombstone[],
): (ip: string) => number | null {
  const full = new Map<number, Map<number, Map<string, number>>>([
    [4, new Map()],
    [6, new Map()],
  ]);
  const masked = new Map<number, Map<string, number>>();
  for (const { family, prefix, hash, untilAt, maskedHash, maskedPrefix } of tombstones) {
    enter(full.get(family), prefix, hash, untilAt);
    if (maskedHash !== null && maskedPrefix !== null) enter(masked, maskedPrefix, maskedHash, untilAt);
  }
  return (ip) => {
    const address = readSentAddress(ip);
    if (address !== null)
      return latest(full.get(address.family), (prefix) => key.hash("tombstone", networkOf(address, prefix)));
    const hidden = readMasked(ip);
    return hidden === null ? null : latest(masked, (prefix) => key.hash("masked", networkOf(hidden, prefix)));
  };
}

type ByPrefix = Map<number, Map<string, number>>;

function enter(byPrefix: ByPrefix | undefined, prefix: number, hash: Buffer, untilAt: number): void {
  const hashes = byPrefix?.get(prefix) ?? new Map<string, number>();
  const name = hash.toString("hex");
  byPrefix?.set(prefix, hashes.set(name, Math.max(untilAt, hashes.get(name) ?? untilAt)));
}

function latest(byPrefix: ByPrefix | undefined, hashOf: (prefix: number) => Buffer): number | null {
  let untilAt: number | null = null;
  for (const [prefix, hashes] of byPrefix ?? []) {
    const found = hashes.get(hashOf(prefix).toString("hex"));
    if (found !== undefined) untilAt = Math.max(untilAt ?? found, found);
  }
  return untilAt;
}
