import type { EdgeErrorCode } from "../edge-error.ts";

const FIRST_BACKOFF_MS = 1_000;
/** The longest sleep inside a call; whatever is longer goes back to the caller as a wait. */
const MAX_SLEEP_MS = 30_000;
/** The longest wait that is believed: events expire after 72 hours, so no header may silence a poller for a day. */
const MAX_WAIT_MS = 15 * 60_000;

/** The ceiling of the pause after the n-th failed attempt: 1, 2, 4 ... s, at most 30 s. */
function backoffCeilingMs(attempt: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), MAX_SLEEP_MS);
}

/** Whether repeating may help and cannot do harm. A 429 did nothing, so it is safe for every method. */
export function mayRetry(code: EdgeErrorCode, isRepeatable: boolean): boolean {
  if (code === "EDGE_RATE_LIMITED") return true;
  return (
    isRepeatable && (code === "EDGE_UNAVAILABLE" || code === "EDGE_NETWORK" || code === "EDGE_MALFORMED")
  );
}

export type RetryPlan =
  | { readonly kind: "sleep"; readonly delayMs: number }
  /** `waitMs` is how long the caller should stay away; null leaves it to the caller's own schedule. */
  | { readonly kind: "stop"; readonly waitMs: number | null };

/** After a failed attempt that may be repeated. The server's word wins over the back-off and is not jittered. */
export function planRetry(state: {
  attempt: number;
  maxAttempts: number;
  code: EdgeErrorCode;
  retryAfterMs: number | null;
  remainingMs: number;
  /** 0 to 1, exclusive. */
  random: number;
}): RetryPlan {
  const { attempt, retryAfterMs } = state;
  const isTold = retryAfterMs !== null && retryAfterMs > 0;
  const delayMs = isTold ? retryAfterMs : Math.floor(state.random * backoffCeilingMs(attempt));
  const isLast = attempt >= state.maxAttempts;
  if (!isLast && delayMs <= MAX_SLEEP_MS && delayMs < state.remainingMs) return { kind: "sleep", delayMs };
  if (isTold) return { kind: "stop", waitMs: Math.min(retryAfterMs, MAX_WAIT_MS) };
  return { kind: "stop", waitMs: state.code === "EDGE_RATE_LIMITED" ? backoffCeilingMs(attempt) : null };
}
