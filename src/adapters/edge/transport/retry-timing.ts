import type { EdgeErrorCode } from "../edge-error.ts";

const FIRST_BACKOFF_MS = 1_000;
/** The longest sleep within a call. A longer wait is returned to the caller. */
const MAX_SLEEP_MS = 30_000;
/** The longest wait that is accepted: events expire after 72 hours, so no header may stop a poller for a day. */
const MAX_WAIT_MS = 15 * 60_000;

/** Returns the maximum pause after the n-th failed attempt: 1, 2, 4 ... s, at most 30 s. */
function backoffCeilingMs(attempt: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), MAX_SLEEP_MS);
}

/** Returns whether a retry may help and is harmless. A 429 did nothing, so it is safe for every method. */
export function mayRetry(code: EdgeErrorCode, isRepeatable: boolean): boolean {
  if (code === "EDGE_RATE_LIMITED") return true;
  return (
    isRepeatable && (code === "EDGE_UNAVAILABLE" || code === "EDGE_NETWORK" || code === "EDGE_MALFORMED")
  );
}

export type RetryPlan =
  | { readonly kind: "sleep"; readonly delayMs: number }
  /** `waitMs` is how long the caller should wait; null leaves the time to the caller's own schedule. */
  | { readonly kind: "stop"; readonly waitMs: number | null };

/**
 * Plans the next step after a failed attempt that may be repeated. The server's Retry-After replaces the back-off and
 * is not jittered.
 */
export function planRetry(state: {
  attempt: number;
  maxAttempts: number;
  code: EdgeErrorCode;
  retryAfterMs: number | null;
  remainingMs: number;
  /** A number from 0 to 1, exclusive. */
  random: number;
}): RetryPlan {
  const { attempt, retryAfterMs } = state;
  const isWaitRequested = retryAfterMs !== null && retryAfterMs > 0;
  const delayMs = isWaitRequested ? retryAfterMs : Math.floor(state.random * backoffCeilingMs(attempt));
  const isLast = attempt >= state.maxAttempts;
  if (!isLast && delayMs <= MAX_SLEEP_MS && delayMs < state.remainingMs) return { kind: "sleep", delayMs };
  if (isWaitRequested) return { kind: "stop", waitMs: Math.min(retryAfterMs, MAX_WAIT_MS) };
  return { kind: "stop", waitMs: state.code === "EDGE_RATE_LIMITED" ? backoffCeilingMs(attempt) : null };
}
