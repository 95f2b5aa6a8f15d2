import type { CoveredHour } from "./covered-hour.ts";
import { firstListedDay, HOUR_MS, horizonAt } from "./horizon.ts";
import type { SearchSpan } from "./plan-search.ts";

/**
 * The hour to search once more from end to end, the one that expires first in front; null when there is none. Every
 * undecided hour needs such a search after it has settled. Where the list can no longer be asked, a search that itself
 * found nothing new stands in for the pass. Hours are oldest first.
 */
export function planClosingSearch(
  now: number,
  hours: readonly CoveredHour[],
  { settleMs }: { settleMs: number },
): SearchSpan | null {
  const next = hours.find((hour) => isWholeAndSettled(now, hour, settleMs) && lacksClosingSearch(now, hour));
  if (next === undefined) return null;
  const { startsAt } = next;
  return { hour: startsAt, from: startsAt, to: startsAt + HOUR_MS, isFirst: false };
}

/** Undecided, not yet beginning to expire, and searched to its end once already. */
export function isWholeAndSettled(now: number, hour: CoveredHour, settleMs: number): boolean {
  const end = hour.startsAt + HOUR_MS;
  const isSearched = hour.searchedThrough !== null && hour.searchedThrough >= end;
  return hour.state === "open" && hour.startsAt >= horizonAt(now) && end + settleMs <= now && isSearched;
}

function lacksClosingSearch(now: number, { startsAt, closingSearchAt, lastNewAt }: CoveredHour): boolean {
  if (closingSearchAt === null) return true;
  const foundSomething = lastNewAt !== null && lastNewAt >= closingSearchAt;
  return foundSomething && startsAt < firstListedDay(now);
}

/** Whether a search of [from, to), begun at `startedAt`, is the closing search of the hour. */
export function isClosingSearch(
  { hour, from, to }: Pick<SearchSpan, "hour" | "from" | "to">,
  startedAt: number,
  settleMs: number,
): boolean {
  return from <= hour && to >= hour + HOUR_MS && startedAt >= hour + HOUR_MS + settleMs;
}
