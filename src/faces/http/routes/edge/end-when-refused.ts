import type { ServerResponse } from "node:http";

/** Interval of the check. A client with a revoked key may read for at most this long and the time of one lookup. */
const CHECK_EVERY_MS = 10_000;

/**
 * Ends an answer once `isAllowed` returns false. A timer calls it, because a client that does not read makes no
 * progress. While the key cannot be looked up, a client that was admitted stays connected.
 */
export function endWhenRefused(
  raw: ServerResponse,
  isAllowed: () => Promise<boolean>,
  everyMs = CHECK_EVERY_MS,
): void {
  if (raw.destroyed) return;
  const timer = setInterval(() => void check(), everyMs).unref();
  raw.once("close", () => clearInterval(timer));

  async function check(): Promise<void> {
    if (!(await isAllowed().catch(() => true))) raw.destroy();
  }
}
