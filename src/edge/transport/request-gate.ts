/**
 * Who is served first when requests are scarce. `low` is for what a person started and no deadline drives, such as a
 * long backfill: it leaves a reserve to the calls that keep up with the platform's 72 hours.
 */
export type RequestPriority = "normal" | "low";

/** Says when a request may be sent. The transport asks before every attempt. */
export interface RequestGate {
  /** Resolves when one request may be sent, and rejects with the signal's reason once that aborts. */
  enter(priority: RequestPriority, signal: AbortSignal): Promise<void>;
  /** The platform answered 429. Null when it did not say for how long. Returns at once. */
  limited(retryAfterMs: number | null): void;
}

/** For commands that a person types one call at a time. */
export const openGate: RequestGate = { enter: async () => {}, limited: () => {} };
