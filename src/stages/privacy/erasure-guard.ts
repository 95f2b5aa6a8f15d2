import { ServiceError } from "#lib/errors.ts";
import { rewriteRawBlock } from "#model/raw-block.ts";
import { eraseRecord } from "./erase-record.ts";
import { matchTombstones, type Tombstone } from "./match-tombstones.ts";
import { ERASED } from "./pseudonym.ts";
import type { PseudonymKey } from "./pseudonym-key.ts";
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
