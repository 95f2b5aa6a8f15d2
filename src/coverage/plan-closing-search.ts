import { HOUR_MS } from "../lib/units.ts";
import type { CoveredHour } from "../model/covered-hour.ts";
import { firstListedDay, horizonAt } from "../model/horizon.ts";
import { agreedFor, type Look } from "../model/look.ts";
import { isLowerForNow } from "./find-contradictions.ts";
import { AGREE_LONG_MS, AGREE_MS, isFresh, settledAt } from "./hour-proof.ts";
import type { SearchSpan } from "./plan-search.ts";

/**
 * A search that did not show the stored events is repeated after this; it may have run at the same time as the list.
 */
const REPEAT_MS = 5 * 60_000;

/**
 * Returns the hour to search once more from end to end, the one that expires first, or null. Every undecided hour
 * needs such a search after it has settled, and again while the search does not show exactly the stored events. Hours
 * are oldest first.
 */
export function planClosingSearch(
  now: number,
  hours: readonly CoveredHour[],
  { settleMs }: { settleMs: number },
): SearchSpan | null {
  const next = hours.find((hour) => {
    const dueAt = nextSearchAt(now, hour, settleMs);
    return isSearchedAndSettled(now, hour, settleMs) && dueAt !== null && dueAt <= now;
  });
  if (next === undefined) return null;
  const { startsAt } = next;
  return { hour: startsAt, from: startsAt, to: startsAt + HOUR_MS, isFirst: false };
}

/**
 * Returns whether an hour is no gap, does not begin to expire yet, has settled, and was searched to its end once
 * already.
 */
export function isSearchedAndSettled(now: number, hour: CoveredHour, settleMs: number): boolean {
  const end = hour.startsAt + HOUR_MS;
  const isSearched = hour.searchedThrough !== null && hour.searchedThrough >= end;
  return hour.state !== "gap" && hour.startsAt >= horizonAt(now) && end + settleMs <= now && isSearched;
}

/** Returns when the hour's next closing search is due, epoch ms; null when its latest one is enough. */
function nextSearchAt(now: number, hour: CoveredHour, settleMs: number): number | null {
  const { startsAt, lastNewAt, storedCount, surplusCells, looks, state } = hour;
  const { search, counts } = looks;
  if (!isFresh(search, hour, settledAt(hour, settleMs))) return state === "open" ? 0 : null;
  // A sealed hour is searched again only if its latest search showed less than an earlier one.
  if (state === "sealed") return isLowerForNow(search) ? repeatAt(search) : null;
  const foundSomething = lastNewAt !== null && lastNewAt >= search.at;
  if (foundSomething && startsAt < firstListedDay(now)) return 0;
  if (storedCount === 0 && search.count === 0)
    return agreedFor(search) >= AGREE_LONG_MS ? null : search.since + AGREE_LONG_MS;
  if (search.count !== storedCount || search.lacks !== undefined) return repeatAt(search);
  if (isLowerForNow(search)) return repeatAt(search);
  if (surplusCells === 0 || counts === undefined) return null;
  // The search may drop the events that the counts lack at the same time, or later.
  return search.at < counts.since ? 0 : search.at + AGREE_LONG_MS;
}

/**
 * A search that lacks events is repeated after ten minutes, and then after as long as it has agreed, up to an hour: a
 * short failure of the platform ends soon after the platform recovers, and a lasting one costs a search per hour.
 */
function repeatAt(search: Look): number {
  if (search.lacks === undefined) return search.at + REPEAT_MS;
  return search.at + Math.min(Math.max(agreedFor(search), AGREE_MS), AGREE_LONG_MS);
}

/** Returns whether a search of [from, to), begun at `startedAt`, is the closing search of the hour. */
export function isClosingSearch(
  { hour, from, to }: Pick<SearchSpan, "hour" | "from" | "to">,
  startedAt: number,
  settleMs: number,
): boolean {
  return from <= hour && to >= hour + HOUR_MS && startedAt >= hour + HOUR_MS + settleMs;
}
