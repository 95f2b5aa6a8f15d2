import { KEPT_MS, type KnownHorizon, WHOLE_HORIZON } from "#model/horizon.ts";

/** The platform's clock may be ahead by this much, so that it forgets an hour before it is expected to. */
export const CLOCK_SKEW_MS = 10 * 60_000;
/** A horizon that moves by more than this has changed. */
const CHANGE_MS = 30 * 60_000;
/** At least this many of the oldest stored events must be gone. Fewer may have been deleted one by one. */
const GONE_EVENTS = 5;
/** An undecided hour beyond the horizon becomes a gap after this time, because a gap is final. */
export const GIVE_UP_MS = 6 * 3_600_000;

/** The oldest events that a comparison of the counts shows. */
export interface SeenHorizon {
  readonly at: number;
  /** Time of the oldest event that the platform counts. */
  readonly oldestShownAt: number;
  /** The stored events before it, all of which are gone: their number, and the time of the newest. */
  readonly gone: { readonly events: number; readonly newestAt: number | null };
}

/** Returns the horizon after a comparison: a longer one at once, a shorter one with the comparison as its `since`. */
export function learnHorizon(known: KnownHorizon, { at, oldestShownAt, gone }: SeenHorizon): KnownHorizon {
  const { keptMs } = known;
  if (keptMs !== null && at - oldestShownAt > keptMs + CLOCK_SKEW_MS) return WHOLE_HORIZON;
  if (gone.newestAt === null || gone.events < GONE_EVENTS) return known;
  const goneMs = at - gone.newestAt;
  if (goneMs > KEPT_MS - CLOCK_SKEW_MS) return known;
  const isChanged = keptMs === null || goneMs < keptMs - CHANGE_MS;
  return isChanged
    ? { keptMs: goneMs, since: at, beforeMs: keptMs ?? KEPT_MS }
    : { ...known, keptMs: goneMs };
}
