/** Keeps erased events out of what is stored later. */
import { ServiceError } from "#lib/errors.ts";
import { isObject, parseJson } from "#lib/json.ts";
import { networkOf, readMasked, readSentAddress } from "#model/ip-address.ts";
import { rewriteRawBlock } from "#model/raw-block.ts";
import { ERASED, type PseudonymKey } from "./pseudonym.ts";
import { replaceAddresses } from "./replace-addresses.ts";

/** Thrown when this process lacks the key of the database's pseudonyms and tombstones. */
export class PseudonymKeyError extends ServiceError {
  override readonly name = "PseudonymKeyError";
  readonly code = "PSEUDONYM_KEY";
  readonly disposition = "retry";
  /** The message without the advice. */
  readonly problem: string;

  /** `remedies`: what to do, in the order in which to try it. */
  constructor(problem: string, remedies: readonly string[] = [], options: ErrorOptions = {}) {
    super([problem, ...remedies].join(" "), options);
    this.problem = problem;
  }
}

/** Empties the records of events in a block. */
export const recordEraser = {
  erase: (block: Buffer, positions: readonly number[]) => rewriteRawBlock(block, positions, eraseRecord),
};

/**
 * Returns the guard that keeps erased data from being stored again. `onMissing` is called when a page cannot be
 * judged because the key is missing.
 */
export function createErasureGuard(
  openKey: () => Promise<PseudonymKey>,
  onMissing: (error: PseudonymKeyError) => void = () => undefined,
) {
  return {
    ...recordEraser,
    async judge<T extends Tombstone & { readonly keyId: string }>(tombstones: readonly T[]) {
      const key = await openKey().catch((thrown: unknown) => {
        if (!(thrown instanceof PseudonymKeyError)) throw thrown;
        onMissing(thrown);
        return null;
      });
      if (key === null) return null;
      const { own = [], orphans = [] } = Object.groupBy(tombstones, ({ keyId }) =>
        keyId === key.id ? "own" : "orphans",
      );
      return { match: matchTombstones(key, own), orphans };
    },
    async eraseUnreadable(
      { raw, reason }: { readonly raw: Buffer; readonly reason: string },
      covers: (ip: string) => boolean,
    ) {
      return {
        raw: containsAddress(raw, covers) ? eraseUnreadable(await openKey(), raw) : raw,
        // The reason quotes names of the entry's members.
        reason: replaceAddresses(reason, (ip) => (covers(ip) ? ERASED : null)),
      };
    },
  };
}

/** Returns whether unreadable bytes contain an address that `covers` accepts. */
export function containsAddress(raw: Buffer, covers: (ip: string) => boolean): boolean {
  let isHit = false;
  replaceAddresses(raw.toString("utf8"), (ip) => {
    isHit ||= covers(ip);
    return null;
  });
  return isHit;
}

/**
 * Returns a replacement for unreadable bytes. Equal bytes get equal replacements, so that bytes that are read again
 * are recognised.
 */
export function eraseUnreadable(key: PseudonymKey, raw: Buffer): Buffer {
  return Buffer.from(JSON.stringify({ erased: key.hash("content", raw).toString("hex") }));
}

/** The record that an erasure leaves; times in epoch ms. */
interface Tombstone {
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

/** Labels that the platform sets and that say nothing about a person. */
const KEPT_LABELS = ["country", "ruleId", "severity", "ruleGroup", "status", "serverZone"];

/**
 * Returns the record of an erased event in the form of other records. It keeps that the event occurred, when, and
 * which rule matched. A second call changes nothing.
 */
export function eraseRecord(raw: Buffer): Buffer {
  const entry = parseJson(raw.toString());
  const { logId, timestamp, labels } = isObject(entry) ? entry : {};
  const kept = Object.entries(isObject(labels) ? labels : {}).filter(([name]) => KEPT_LABELS.includes(name));
  return Buffer.from(JSON.stringify({ logId, timestamp, log: "{}", labels: Object.fromEntries(kept) }));
}
