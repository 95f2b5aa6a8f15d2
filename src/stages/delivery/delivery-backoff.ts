import type { Disposition } from "#lib/errors.ts";

const FIRST_CEILING_MS = 5_000;
/** An urgent message that could not be sent is tried again in minutes, not in days. */
const MAX_CEILING_MS = 15 * 60_000;
const MIN_DELAY_MS = 1_000;
/** Upper limit for Retry-After: no header may stop a channel for a day. */
const MAX_WAIT_MS = 60 * 60_000;
/** Unsent notifications older than this are dropped. Their channel has long been reported as failing. */
export const MAX_AGE_MS = 3 * 24 * 60 * 60_000;

export type DeliveryPlan =
  | { readonly kind: "again"; readonly delayMs: number }
  | { readonly kind: "give-up"; readonly because: "refused" | "too old" };

/**
 * Returns the next step after a failed attempt: full jitter under a doubling ceiling, or the receiver's Retry-After.
 */
export function planDelivery(failed: {
  readonly disposition: Disposition;
  readonly waitMs: number | undefined;
  /** The first attempt is 1. */
  readonly attempt: number;
  /** Time since the message was written. */
  readonly ageMs: number;
  /** 0 to 1, exclusive. */
  readonly random: number;
}): DeliveryPlan {
  if (failed.disposition === "give-up") return { kind: "give-up", because: "refused" };
  if (failed.ageMs > MAX_AGE_MS) return { kind: "give-up", because: "too old" };
  const askedMs = failed.disposition === "wait" ? failed.waitMs : undefined;
  if (askedMs !== undefined) {
    return { kind: "again", delayMs: Math.min(Math.max(askedMs, MIN_DELAY_MS), MAX_WAIT_MS) };
  }
  const ceilingMs = Math.min(FIRST_CEILING_MS * 2 ** Math.min(failed.attempt - 1, 20), MAX_CEILING_MS);
  return { kind: "again", delayMs: Math.max(Math.floor(failed.random * ceilingMs), MIN_DELAY_MS) };
}
