import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";

export interface SearchedHour {
  readonly startsAt: number;
  /** End of the part of the hour that was searched; null before it has begun. */
  readonly searchedThrough: number | null;
}

/** The span [from, to) to search next; once stored, its hour counts as searched through `to`. */
export interface SearchSpan {
  readonly hour: number;
  readonly from: number;
  readonly to: number;
  /** True if no part of this hour was searched before, so that its events are probably all new. */
  readonly isFirst: boolean;
}

export interface SearchPlanOptions {
  /** The newest minutes are searched before the backfill once they are older than this. */
  readonly freshMs: number;
  /** Length of the time before the last search that is read again, for late events. */
  readonly overlapMs: number;
  /** Length of a period. All searches of it but the first read only a little of the overlap, because more would cost as much again. */
  readonly periodMs?: number;
  /** How long the platform keeps events. */
  readonly keptMs?: number;
}

/** Enough for events that the platform shows a few seconds late. */
export const SHORT_OVERLAP_MS = 30_000;

/**
 * Returns the next span to search, or null when everything is searched. The newest minutes come first as soon as they
 * are older than `freshMs`, so that a long backfill hides no attack. Then comes the hour that expires first. All
 * times in epoch ms; `hours` are oldest first.
 */
export function planSearch(
  now: number,
  hours: readonly SearchedHour[],
  { freshMs, overlapMs, periodMs = 1, keptMs }: SearchPlanOptions,
): SearchSpan | null {
  const horizon = horizonAt(now, keptMs);
  const searched = new Map(hours.map(({ startsAt, searchedThrough }) => [startsAt, searchedThrough]));
  const spanOf = (hour: number): SearchSpan => {
    const through = searched.get(hour) ?? null;
    const isSamePeriod = Math.floor((through ?? 0) / periodMs) === Math.floor(now / periodMs);
    const overlap = isSamePeriod ? Math.min(overlapMs, SHORT_OVERLAP_MS) : overlapMs;
    const from = Math.max(through === null ? hour : through - overlap, horizon);
    return { hour, from, to: Math.min(hour + HOUR_MS, now), isFirst: through === null };
  };
  const isUnfinished = (hour: number) => (searched.get(hour) ?? 0) < hour + HOUR_MS;
  const liveHour = startOfHour(now);
  const justEnded = liveHour - HOUR_MS;
  if (now - (searched.get(liveHour) ?? liveHour - freshMs) >= freshMs && now > liveHour) {
    const live = spanOf(liveHour);
    // A search that begins exactly on the hour would end the previous hour too early for the overlap to reach back
    // into it.
    const isJoined = live.isFirst && !isUnfinished(justEnded);
    return isJoined ? { ...live, from: liveHour - overlapMs, isFirst: false } : live;
  }
  // The hour that has just ended lacks its last minutes, so it still belongs to the newest ones.
  if (isUnfinished(justEnded) && searched.get(justEnded)) return spanOf(justEnded);
  for (let hour = startOfHour(horizon); hour < liveHour; hour += HOUR_MS) {
    if (isUnfinished(hour)) return spanOf(hour);
  }
  return null;
}

/**
 * Returns whether every hour of [fromMs, toMs) that has ended and that the platform still serves has been searched to
 * its end.
 */
export function isBackfilled(
  now: number,
  hours: readonly SearchedHour[],
  { fromMs = 0, toMs = now, keptMs }: { fromMs?: number; toMs?: number; keptMs?: number } = {},
): boolean {
  const searched = new Map(hours.map(({ startsAt, searchedThrough }) => [startsAt, searchedThrough]));
  const last = Math.min(startOfHour(now), toMs);
  for (let hour = Math.max(startOfHour(horizonAt(now, keptMs)), fromMs); hour < last; hour += HOUR_MS) {
    if ((searched.get(hour) ?? 0) < hour + HOUR_MS) return false;
  }
  return true;
}
