import { ServiceError } from "../lib/errors.ts";
import type { EventKey } from "../model/event-key.ts";
import { hashEventKey, unpackLogIdHashes } from "../model/log-id-hash.ts";
import { rewriteRawBlock } from "../model/raw-block.ts";
import { eraseRecord } from "./erase-record.ts";
import { matchTombstones, type Tombstone } from "./match-tombstones.ts";
import type { PseudonymKey } from "./pseudonym-key.ts";
import { replaceAddresses } from "./replace-addresses.ts";

/** The key that the database's pseudonyms and tombstones are made with is not at hand. */
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

/** Where an event's record lies in a block, and how it is emptied there. */
export const recordEraser = {
  find(logIdHashes: Buffer, events: readonly EventKey[]): readonly number[] {
    if (events.length === 0) return [];
    const wanted = new Set(events.map(hashEventKey));
    return unpackLogIdHashes(logIdHashes).flatMap((hash, position) => (wanted.has(hash) ? [position] : []));
  },
  erase: (block: Buffer, positions: readonly number[]) => rewriteRawBlock(block, positions, eraseRecord),
};

/** Keeps erased data out of what ingest stores. `onMissing` is called when a page cannot be judged for want of the key. */
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
    async eraseUnreadable(raw: Buffer, covers: (ip: string) => boolean): Promise<Buffer> {
      const isHit = containsAddress(raw, covers);
      return isHit ? eraseUnreadable(await openKey(), raw) : raw;
    },
  };
}

/** Whether bytes that could not be read name such an address. */
export function containsAddress(raw: Buffer, covers: (ip: string) => boolean): boolean {
  let isHit = false;
  replaceAddresses(raw.toString("latin1"), (ip) => {
    isHit ||= covers(ip);
    return null;
  });
  return isHit;
}

/** The same for the same bytes: read again, they are known. */
export function eraseUnreadable(key: PseudonymKey, raw: Buffer): Buffer {
  return Buffer.from(JSON.stringify({ erased: key.hash("content", raw).toString("hex") }));
}
