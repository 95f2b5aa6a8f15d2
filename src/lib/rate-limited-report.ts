import type { Clock } from "./clock.ts";
import { createRateLimiter } from "./rate-limiter.ts";

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
