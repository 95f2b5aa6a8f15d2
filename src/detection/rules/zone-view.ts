import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { HourState } from "#model/kinds.ts";

/** The coverage of an hour as the detector reads it; times in epoch ms. */
export interface ZoneHour {
  readonly startsAtMs: number;
  readonly searchedThroughMs: number | null;
  readonly state: HourState;
}

/** The platform keeps 72 hours, which a first start fills in. */
const BACKFILL_HOURS = 72;
const ENOUGH_HOURS = 24;
/**
 * The search fetches the oldest hours first. Of a site that is younger than the history these are empty, while the hours
 * with its everyday traffic are still missing. Seals come much later, so without the search more hours may be missing.
 */
const FEW_PENDING_HOURS = 6;
/** How old the newest known minute may be: a zone that was not read for longer is not judged. */
const READ_WITHIN_MINUTES = 60;

/** The part of a zone's time that the detector may use. Hours and minutes are numbered since the epoch. */
export interface ZoneView {
  /** False while a first backfill has stored so little history that everyday traffic would look new. */
  readonly isReady: boolean;
  /** False while so many hours are missing that a rule may look new without being it. */
  readonly canShowNewRules: boolean;
  /** Returns whether the hour is not completely in the database. Such hours are removed from the history. */
  readonly isUnknownHour: (hour: number) => boolean;
  /** Returns whether the minute is over and its events have been fetched. */
  readonly isTestable: (minute: number) => boolean;
  /** Changes when the set of known hours changes. */
  readonly fingerprint: string;
}

/**
 * Returns the view of a zone. A zone without coverage rows counts as known throughout. Otherwise an hour is known
 * once it is sealed or searched to its end, and a minute is testable once the search has passed it. If the platform
 * refuses the search, from the first or later, the seals decide for the history and the clock for the minutes. Late
 * events are caught by testing the newest minutes again.
 */
export function viewZone(hours: readonly ZoneHour[], nowMs: number): ZoneView {
  const isOver = (minute: number) => (minute + 1) * MINUTE_MS <= nowMs;
  if (hours.length === 0) {
    return {
      isReady: true,
      canShowNewRules: true,
      isUnknownHour: () => false,
      isTestable: isOver,
      fingerprint: "",
    };
  }
  const byHour = new Map<number, ZoneHour>();
  const known = new Set<number>();
  let newestSearched = Number.NEGATIVE_INFINITY;
  let newestSealed = Number.NEGATIVE_INFINITY;
  let sum = 0;
  // One loop: hundreds of zones have a week of hours each.
  for (const one of hours) {
    const hour = Math.floor(one.startsAtMs / HOUR_MS);
    byHour.set(hour, one);
    if (one.searchedThroughMs !== null) newestSearched = Math.max(newestSearched, hour);
    if (one.state === "sealed") newestSealed = Math.max(newestSealed, hour);
    if (!isKnown(one)) continue;
    known.add(hour);
    sum += hour;
  }
  const wasSearched = newestSearched > Number.NEGATIVE_INFINITY;
  // The platform refuses the search if the newest sealed hour was not searched, and no later one.
  const isSearched = wasSearched && newestSearched >= newestSealed;
  const isFetched = (minute: number) => {
    const hour = Math.floor(minute / 60);
    const through = byHour.get(hour)?.searchedThroughMs ?? 0;
    return known.has(hour) || (isSearched ? through >= (minute + 1) * MINUTE_MS : known.size > 0);
  };
  const { found, pending } = countHours(byHour, known, Math.floor(nowMs / HOUR_MS));
  return {
    // A day of history, or all that can exist.
    isReady: pending === 0 || found >= ENOUGH_HOURS,
    canShowNewRules: !wasSearched || pending <= FEW_PENDING_HOURS,
    isUnknownHour: (hour) => !known.has(hour),
    isTestable: (minute) => isOver(minute) && isFetched(minute),
    fingerprint: `${known.size}/${sum}`,
  };
}

/** Returns the end of the zone's known minutes; null if the last hour, or the last `within` minutes, have none. */
export function readThrough(
  { isTestable }: ZoneView,
  nowMs: number,
  within = READ_WITHIN_MINUTES,
): number | null {
  const endMinute = Math.floor(nowMs / MINUTE_MS);
  for (let minute = endMinute - 1; minute >= endMinute - within; minute -= 1)
    if (isTestable(minute)) return minute + 1;
  return null;
}

/** Returns the view of a zone as it was at the end of an hour, by what is known of the hours now. */
export function viewAfter(hours: readonly ZoneHour[], hour: number): ZoneView {
  const endMs = (hour + 1) * HOUR_MS;
  return viewZone(
    hours.filter(({ startsAtMs }) => startsAtMs < endMs),
    endMs,
  );
}

function isKnown({ state, startsAtMs, searchedThroughMs }: ZoneHour): boolean {
  if (state === "gap") return false;
  return state === "sealed" || (searchedThroughMs ?? 0) >= startsAtMs + HOUR_MS;
}

/**
 * Counts the known hours of a first backfill and those still to come. The hour that has just ended may lack its last
 * moments, so it does not count.
 */
function countHours(
  byHour: ReadonlyMap<number, ZoneHour>,
  known: ReadonlySet<number>,
  nowHour: number,
): { found: number; pending: number } {
  let found = 0;
  let pending = 0;
  for (let hour = nowHour - BACKFILL_HOURS + 1; hour <= nowHour - 2; hour += 1) {
    if (known.has(hour)) found += 1;
    else if (byHour.get(hour)?.state !== "gap") pending += 1;
  }
  return { found, pending };
}
