/**
 * Order of requests while the budget is scarce. `low` is for work that a person started and that has no deadline,
 * such as a long backfill: it leaves a reserve to the calls that have to keep up with the platform's 72 hours.
 */
export type RequestPriority = "normal" | "low";

/** Admits requests. The transport calls it before every attempt. */
export interface RequestGate {
  /**
   * Resolves when one request may be sent, and rejects with the signal's reason once that aborts. Rejects with
   * ZonePausedError if the platform has refused the zone and the wait would be long. `zoneId` is null for a request of no
   * zone.
   */
  enter(priority: RequestPriority, signal: AbortSignal, zoneId: number | null): Promise<void>;
  /** Reports that the platform answered 429. Null when the answer named no time. Returns at once. */
  limited(retryAfterMs: number | null, zoneId: number | null): void;
  /** Reports that the platform answered a request for the zone. Returns at once. */
  answered(zoneId: number): void;
}

/** Thrown instead of a request, because the platform refused the zone shortly before. */
export class ZonePausedError extends Error {
  override readonly name = "ZonePausedError";
  readonly waitMs: number;

  constructor(zoneId: number, waitMs: number) {
    const seconds = Math.ceil(waitMs / 1_000);
    super(`the platform refused zone ${zoneId} (429); the next request for it may be sent in ${seconds} s`);
    this.waitMs = waitMs;
  }
}

/** Admits every request at once; for commands that a person runs one call at a time. */
export const openGate: RequestGate = { enter: async () => {}, limited: () => {}, answered: () => {} };
