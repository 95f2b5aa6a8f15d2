/** Limits how often something may happen. */
import { LRUCache } from "lru-cache";
import type { Clock } from "./clock.ts";

interface RateLimiterOptions {
  /** Number of requests in one full window; all of them may come at once. */
  readonly quota: number;
  readonly windowMs: number;
  /** Maximum number of remembered keys; the least recently used are forgotten first. */
  readonly maxKeys: number;
}

export interface Taken {
  readonly isAllowed: boolean;
  readonly remaining: number;
  /** Time until the quota is full again. */
  readonly resetMs: number;
  /** Time until the next request is allowed; 0 if this one was allowed. */
  readonly retryAfterMs: number;
}

export type RateLimiter = ReturnType<typeof createRateLimiter>;

/**
 * Allows `quota` requests per window and key, refilled evenly (GCRA). It stores one number per key: the time at which
 * the quota is full again. A refused request uses no quota, so a client that keeps asking is admitted like any other.
 */
export function createRateLimiter({ quota, windowMs, maxKeys }: RateLimiterOptions) {
  const stepMs = windowMs / quota;
  // An attacker with more addresses gains a quota for each anyway. With `max` in place of `maxSize`, room for all keys would be
  // taken at once.
  const fullAt = new LRUCache<string, number>({ maxSize: maxKeys, sizeCalculation: () => 1 });
  return {
    take(key: string, nowMs: number): Taken {
      const known = fullAt.get(key);
      // The clock may have been set back, so the wait is at most one window.
      const spentMs = Math.min(Math.max((known ?? nowMs) - nowMs, 0), windowMs);
      const isAllowed = spentMs + stepMs <= windowMs + 1e-6;
      const resetMs = isAllowed ? spentMs + stepMs : spentMs;
      if (isAllowed) fullAt.set(key, nowMs + resetMs);
      return {
        isAllowed,
        remaining: Math.max(0, Math.floor((windowMs - resetMs) / stepMs + 1e-6)),
        resetMs,
        retryAfterMs: isAllowed ? 0 : spentMs + stepMs - windowMs,
      };
    },
  };
}

const EVERY_MS = 60_000;
const MAX_KEYS = 100;

/**
 * Returns a function that reports the same error at most once a minute, with the number of omitted reports, so that the
 * log cannot fill the disk.
 */
export function createRateLimitedReport(
  report: (where: string, error: Error, leftOut: number) => void,
  clock: Clock,
): (where: string, error: Error) => void {
  const limiter = createRateLimiter({ quota: 1, windowMs: EVERY_MS, maxKeys: MAX_KEYS });
  const leftOut = new Map<string, number>();
  return (where, error) => {
    const key = `${where} ${error.message}`.slice(0, 200);
    if (!limiter.take(key, clock()).isAllowed) {
      if (leftOut.size < MAX_KEYS || leftOut.has(key)) leftOut.set(key, (leftOut.get(key) ?? 0) + 1);
      return;
    }
    report(where, error, leftOut.get(key) ?? 0);
    leftOut.delete(key);
  };
}
