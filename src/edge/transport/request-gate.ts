/**
 * Order of requests while the budget is scarce. `low` is for work that a person started and that has no deadline,
 * such as a long backfill: it leaves a reserve to the calls that have to keep up with the platform's 72 hours.
 */
export type RequestPriority = "normal" | "low";

/** Admits requests. The transport calls it before every attempt. */
export interface RequestGate {
  /** Resolves when one request may be sent, and rejects with the signal's reason once that aborts. */
  enter(priority: RequestPriority, signal: AbortSignal): Promise<void>;
  /** Reports that the platform answered 429. Null when the answer named no time. Returns at once. */
  limited(retryAfterMs: number | null): void;
}

/** Admits every request at once; for commands that a person runs one call at a time. */
export const openGate: RequestGate = { enter: async () => {}, limited: () => {} };
