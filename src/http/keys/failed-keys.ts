import { hashAccessKey } from "../../model/access-key.ts";

const FREE_FAILURES = 10;
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 15 * 60_000;
/** Longer than the longest wait, or patience would be all that a guesser needs. */
const FORGOTTEN_AFTER_MS = 4 * MAX_WAIT_MS;
const MAX_NETWORKS = 10_000;
export const MAX_GOOD_KEYS = 1_000;

interface Standing {
  readonly failures: number;
  readonly failedAt: number;
}

export type FailedKeys = ReturnType<typeof createFailedKeys>;

/**
 * Who sends wrong keys waits before the next is looked at: ten are free, then 1 s, 2 s, 4 s up to 15 minutes, counted per
 * network and forgotten after an hour without one. Keys that were good lately, here or, as `known` (SHA-256) tells, before
 * the start, pass all the same, to be looked up as ever: a neighbour behind the same address must not be able to lock
 * them out.
 */
export function createFailedKeys(known: readonly Buffer[] = []) {
  const standings = new Map<string, Standing>();
  // The one used last comes last: the first is forgotten first.
  const goodKeys = new Set(known.slice(0, MAX_GOOD_KEYS).reverse().map(toText));

  function waitMs(network: string, nowMs: number): number {
    const standing = standings.get(network);
    if (standing === undefined || standing.failures < FREE_FAILURES) return 0;
    const blockMs = Math.min(FIRST_WAIT_MS * 2 ** (standing.failures - FREE_FAILURES), MAX_WAIT_MS);
    // Never more than that, should the clock have been set back.
    return Math.min(blockMs, Math.max(0, standing.failedAt + blockMs - nowMs));
  }

  return {
    /** How long this network's key has to wait to be looked at. */
    waitMs: (network: string, key: string, nowMs: number): number =>
      goodKeys.has(digest(key)) ? 0 : waitMs(network, nowMs),
    noteFailure(network: string, key: string, nowMs: number): void {
      goodKeys.delete(digest(key));
      const before = standings.get(network);
      const isForgotten = before === undefined || nowMs - before.failedAt > FORGOTTEN_AFTER_MS;
      standings.delete(network);
      standings.set(network, { failures: (isForgotten ? 0 : before.failures) + 1, failedAt: nowMs });
      dropOldest(standings, MAX_NETWORKS);
    },
    noteSuccess(key: string): void {
      const known = digest(key);
      // Again, so that the oldest is the one not seen for longest.
      goodKeys.delete(known);
      goodKeys.add(known);
      dropOldest(goodKeys, MAX_GOOD_KEYS);
    },
  };
}

function dropOldest(
  known: { readonly size: number; keys(): Iterable<string>; delete(key: string): boolean },
  max: number,
): void {
  for (const key of known.keys()) {
    if (known.size <= max) return;
    known.delete(key);
  }
}

/** Not the key itself: it should be in memory no longer than its request. */
function digest(key: string): string {
  return toText(hashAccessKey(key));
}

function toText(hash: Buffer): string {
  return hash.toString("base64url");
}
