import { HOUR_MS } from "#lib/units.ts";
import { agreedFor, type CoveredHour, type Look } from "#model/covered-hour.ts";
import { firstListedDay, horizonAt } from "#model/horizon.ts";
import { AGREE_LONG_MS, AGREE_MS, isFresh, settledAt } from "./hour-proof.ts";
import type { SearchSpan } from "./plan-search.ts";

/**
 * A search that did not show the stored events is repeated after this; it may have run at the same time as the list.
 */
const REPEAT_MS = 5 * 60_000;
/** A search that sealed an hour is confirmed by another one this long after it, for events that appear late. */
const SECOND_LOOK_MS = HOUR_MS;
/** Age of a sealed hour at which it is searched again; ms since its start. */
const LOOK_AGAIN_MS = 6 * HOUR_MS;
/** The last search of a sealed hour is due this long before the platform forgets it. */
const LAST_LOOK_MS = 7 * HOUR_MS;

export interface ClosingPolicy {
  readonly settleMs: number;
  readonly keptMs: number;
  /** Hours (epoch ms of their starts) with a value that a later look contested, and when that look began. */
  readonly contested: ReadonlyMap<number, number>;
}

/**
 * Returns the hour to search once more from end to end, the one that expires first, or null. Every undecided hour
 * needs such a search after it has settled, and again while the search does not show exactly the stored events. A sealed
 * hour is searched three times more, because an event may appear late in the search only. Hours are oldest first.
 */
export function planClosingSearch(
  now: number,
  hours: readonly CoveredHour[],
  policy: ClosingPolicy,
): SearchSpan | null {
  const next = hours.find((hour) => {
    const dueAt = nextSearchAt(now, hour, policy);
    return isSearchedAndSettled(now, hour, policy) && dueAt !== null && dueAt <= now;
  });
  if (next === undefined) return null;
  const { startsAt } = next;
  return { hour: startsAt, from: startsAt, to: startsAt + HOUR_MS, isFirst: false };
}

/**
 * Returns whether an hour is no gap, does not begin to expire yet, has settled, and was searched to its end once
 * already.
 */
export function isSearchedAndSettled(
  now: number,
  hour: CoveredHour,
  { settleMs, keptMs }: { readonly settleMs: number; readonly keptMs?: number },
): boolean {
  const end = hour.startsAt + HOUR_MS;
  const isSearched = hour.searchedThrough !== null && hour.searchedThrough >= end;
  return (
    hour.state !== "gap" && hour.startsAt >= horizonAt(now, keptMs) && end + settleMs <= now && isSearched
  );
}

/** Returns when the hour's next closing search is due, epoch ms; null when its latest one is enough. */
function nextSearchAt(
  now: number,
  hour: CoveredHour,
  { settleMs, keptMs, contested }: ClosingPolicy,
): number | null {
  const { startsAt, lastNewAt, storedCount, looks, state, proofFrom } = hour;
  const { search, counts } = looks;
  const contestedAt = contested.get(startsAt);
  const confirmAt = contestedAt !== undefined && search !== undefined ? search.at + AGREE_MS : null;
  if (state === "sealed") {
    if (confirmAt !== null || search === undefined) return confirmAt;
    if (agreedFor(search) < SECOND_LOOK_MS) return search.since + SECOND_LOOK_MS;
    const againAt = [LOOK_AGAIN_MS, keptMs - LAST_LOOK_MS].map((age) => startsAt + age);
    return againAt.find((at) => search.at < at) ?? null;
  }
  // If the hour is to be proven later, one search at once copies what is missing. Others before that prove nothing.
  const isAsked = search !== undefined && proofFrom !== null && search.at >= proofFrom - AGREE_MS;
  if (isAsked && search.at < proofFrom) return proofFrom;
  if (!isFresh(search, hour, settledAt(hour, settleMs))) return 0;
  // While the list serves the day, its pass may have stored the event at the same time as the search ran.
  if (lastNewAt !== null && lastNewAt >= search.at)
    return startsAt < firstListedDay(now) ? 0 : search.at + REPEAT_MS;
  // A change of the counts may be an event that the latest search could not show.
  if (counts !== undefined && counts.lacks !== undefined && counts.since > search.at) return 0;
  if (storedCount === 0 && search.count === 0)
    return agreedFor(search) >= AGREE_LONG_MS ? null : search.since + AGREE_LONG_MS;
  if (search.count !== storedCount || search.lacks !== undefined) return repeatAt(search);
  if (counts?.lacks !== undefined && confirmAt === null) return search.at + AGREE_LONG_MS;
  return confirmAt;
}

/**
 * A search that lacks events is repeated after ten minutes, and then after as long as it has agreed, up to an hour. A
 * short failure of the platform ends soon after the platform recovers, and a lasting one costs a search per hour. No
 * repetition is later than the moment at which the looks have agreed for an hour, because that may seal the hour.
 */
function repeatAt(search: Look): number {
  if (search.lacks === undefined) return search.at + REPEAT_MS;
  const agreed = agreedFor(search);
  const pause = Math.min(Math.max(agreed, AGREE_MS), AGREE_LONG_MS);
  return search.at + (agreed < AGREE_LONG_MS ? Math.min(pause, AGREE_LONG_MS - agreed) : pause);
}

/** Returns whether a search of [from, to), begun at `startedAt`, is the closing search of the hour. */
export function isClosingSearch(
  { hour, from, to }: Pick<SearchSpan, "hour" | "from" | "to">,
  startedAt: number,
  settleMs: number,
): boolean {
  return from <= hour && to >= hour + HOUR_MS && startedAt >= hour + HOUR_MS + settleMs;
}
