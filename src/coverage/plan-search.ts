import { HOUR_MS } from "../lib/units.ts";
import { horizonAt, startOfHour } from "../model/horizon.ts";

export interface SearchedHour {
  readonly startsAt: number;
  /** How far the hour has been searched; null when that has not begun. */
  readonly searchedThrough: number | null;
}

/** The span [from, to) to search next; once stored, its hour counts as searched through `to`. */
export interface SearchSpan {
  readonly hour: number;
  readonly from: number;
  readonly to: number;
  /** Nothing of this hour was searched before: its events are probably all new. */
  readonly isFirst: boolean;
}

export interface SearchPlanOptions {
  /** How far behind the newest event may be before it goes ahead of the backfill. */
  readonly freshMs: number;
  /** What is read again before the point already reached, for events that came late. */
  readonly overlapMs: number;
}

/**
 * What to search next, or null when everything is. The live edge goes first as soon as it is older than `freshMs`, so
 * that a long backfill hides no attack; then what expires first. All times in epoch ms; `hours` are oldest first.
 */
export function planSearch(
  now: number,
  hours: readonly SearchedHour[],
  { freshMs, overlapMs }: SearchPlanOptions,
): SearchSpan | null {
  const horizon = horizonAt(now);
  const searched = new Map(hours.map(({ startsAt, searchedThrough }) => [startsAt, searchedThrough]));
  const spanOf = (hour: number): SearchSpan => {
    const through = searched.get(hour) ?? null;
    const from = Math.max(through === null ? hour : through - overlapMs, horizon);
    return { hour, from, to: Math.min(hour + HOUR_MS, now), isFirst: through === null };
  };
  const isUnfinished = (hour: number) => (searched.get(hour) ?? 0) < hour + HOUR_MS;
  const liveHour = startOfHour(now);
  const justEnded = liveHour - HOUR_MS;
  if (now - (searched.get(liveHour) ?? liveHour - freshMs) >= freshMs && now > liveHour) {
    const live = spanOf(liveHour);
    // A search exactly on the hour ends the one before it too early for the overlap to look back into it.
    const isJoined = live.isFirst && !isUnfinished(justEnded);
    return isJoined ? { ...live, from: liveHour - overlapMs, isFirst: false } : live;
  }
  // The hour that has just ended lacks its last moments: still part of the live edge.
  if (isUnfinished(justEnded) && searched.get(justEnded)) return spanOf(justEnded);
  for (let hour = startOfHour(horizon); hour < liveHour; hour += HOUR_MS) {
    if (isUnfinished(hour)) return spanOf(hour);
  }
  return null;
}

/** Whether every hour of [fromMs, toMs) that has ended and can still be asked for has been searched to its end. */
export function isBackfilled(
  now: number,
  hours: readonly SearchedHour[],
  { fromMs, toMs }: { fromMs: number; toMs: number } = { fromMs: 0, toMs: now },
): boolean {
  const searched = new Map(hours.map(({ startsAt, searchedThrough }) => [startsAt, searchedThrough]));
  const last = Math.min(startOfHour(now), toMs);
  for (let hour = Math.max(startOfHour(horizonAt(now)), fromMs); hour < last; hour += HOUR_MS) {
    if ((searched.get(hour) ?? 0) < hour + HOUR_MS) return false;
  }
  return true;
}
