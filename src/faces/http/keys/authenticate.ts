/** Finds the caller of an access key, notes its use, and slows those who guess. */
import { LRUCache } from "lru-cache";
import type { FoundApiKey } from "#db/people/api-keys.ts";
import type { FoundSession } from "#db/people/sessions.ts";
import type { Clock } from "#lib/clock.ts";
import { hashAccessKey, isSameKey, readKeyId } from "#model/access-key.ts";
import { isRole, scopesOf } from "#model/roles.ts";
import { zonesOfKey } from "#model/zones.ts";
import type { Authenticate, Caller } from "#operations/caller.ts";

interface AuthenticateOptions {
  /** Called for every request, so that a revoked key fails on its next request, at any replica. */
  readonly find: (keyId: string) => Promise<FoundApiKey | null>;
  readonly toCaller: (found: FoundApiKey) => Caller;
  readonly onUsed: (keyId: string) => void;
}

/** An id that no key has. A text that is not a key takes the same path as an unknown key. */
const NO_ID = "";

export function createAuthenticate({ find, toCaller, onUsed }: AuthenticateOptions): Authenticate {
  return async (accessKey) => {
    const found = await find(readKeyId(accessKey) ?? NO_ID);
    const isSame = isSameKey(accessKey, found?.keyHash ?? null);
    if (found === null || !isSame || !found.isLive) return null;
    onUsed(found.keyId);
    return toCaller(found);
  };
}

/** Returns the caller of a key or of a person. `accounts` are those of the service, which a key for accounts follows. */
export function toCaller(
  { keyId, name, zoneIds, accounts: named, isMasked, ...found }: FoundSession["caller"],
  accounts: Parameters<typeof zonesOfKey>[1],
): Caller {
  const roles = found.roles.filter(isRole);
  const zones = zonesOfKey({ zoneIds, accounts: named }, accounts);
  return { keyId, name, roles, scopes: scopesOf(roles), zoneIds: zones, masked: isMasked };
}

interface LastUsedOptions {
  readonly touch: (keyId: string) => Promise<void>;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

const EVERY_MS = 60_000;

/** Records that a key was used, at most once a minute per key. No request waits for it, and a failure is ignored. */
export function createLastUsed({ touch, clock, onError }: LastUsedOptions): (keyId: string) => void {
  const notedAt = new Map<string, number>();
  return (keyId) => {
    const now = clock();
    const before = notedAt.get(keyId);
    if (before !== undefined && now - before < EVERY_MS) return;
    notedAt.set(keyId, now);
    touch(keyId).catch((thrown: unknown) => {
      notedAt.delete(keyId);
      onError(thrown);
    });
  };
}

const FREE_FAILURES = 10;
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 15 * 60_000;
/** Longer than the longest wait. Otherwise a patient guesser could wait until the failures are forgotten. */
const FORGOTTEN_AFTER_MS = 4 * MAX_WAIT_MS;
const MAX_NETWORKS = 10_000;
export const MAX_GOOD_KEYS = 1_000;

interface Failures {
  readonly count: number;
  readonly failedAt: number;
}

export type FailedKeys = ReturnType<typeof createFailedKeys>;

/**
 * Delays the checks of a network that sends wrong keys. Ten failures are free; then the waits are 1 s, 2 s, 4 s, up to
 * 15 minutes. Failures are counted per network and forgotten after an hour without one. A key that was valid recently
 * is checked without a wait, so that another client behind the same address cannot lock it out. `known` contains
 * SHA-256 hashes of such keys from before the start.
 */
export function createFailedKeys(known: readonly Buffer[] = []) {
  const failures = new LRUCache<string, Failures>({ maxSize: MAX_NETWORKS, sizeCalculation: () => 1 });
  const goodKeys = new LRUCache<string, true>({ maxSize: MAX_GOOD_KEYS, sizeCalculation: () => 1 });
  for (const hash of known.slice(0, MAX_GOOD_KEYS).reverse()) goodKeys.set(toText(hash), true);

  function waitMs(network: string, nowMs: number): number {
    const recorded = failures.get(network);
    if (recorded === undefined || recorded.count < FREE_FAILURES) return 0;
    const blockMs = Math.min(FIRST_WAIT_MS * 2 ** (recorded.count - FREE_FAILURES), MAX_WAIT_MS);
    // The clock may have been set back, so the wait is at most `blockMs`.
    return Math.min(blockMs, Math.max(0, recorded.failedAt + blockMs - nowMs));
  }

  return {
    /** Returns how long this network's key has to wait before it is checked. */
    waitMs: (network: string, key: string, nowMs: number): number =>
      goodKeys.has(digest(key)) ? 0 : waitMs(network, nowMs),
    noteFailure(network: string, key: string, nowMs: number): void {
      goodKeys.delete(digest(key));
      const before = failures.get(network);
      const isForgotten = before === undefined || nowMs - before.failedAt > FORGOTTEN_AFTER_MS;
      failures.set(network, { count: (isForgotten ? 0 : before.count) + 1, failedAt: nowMs });
    },
    noteSuccess: (key: string): void => void goodKeys.set(digest(key), true),
  };
}

/** Hashes the key, because a key should be in memory no longer than its request. */
function digest(key: string): string {
  return toText(hashAccessKey(key));
}

function toText(hash: Buffer): string {
  return hash.toString("base64url");
}
