/** Plans the searches that compare and close an hour. */
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { agreedFor, type CoveredHour, type Look } from "#model/covered-hour.ts";
import { firstListedDay, horizonAt, type Span } from "#model/horizon.ts";
import { type ComparedHour, isMissing } from "./compare-counts.ts";
import { AGREE_LONG_MS, AGREE_MS, isValidLook, settledAt } from "./hour-proof.ts";
import type { SearchSpan } from "./plan-search.ts";

/** Maximum number of sparkline buckets of the platform; platform API spec 2.3. */
const MAX_BUCKETS = 500;

/** A span to be counted in buckets of equal length: an hour each by default. `from` in epoch ms. */
export interface CountedSpan {
  readonly from: number;
  readonly buckets: number;
  readonly bucketMs?: number;
}

/**
 * Returns the span from the first to the last hour that is compared with the platform's counts, or null. It contains
 * every hour that has settled and was searched, even sealed ones, because one call counts them all.
 */
export function planComparison(
  now: number,
  hours: readonly CoveredHour[],
  policy: { readonly settleMs: number },
): CountedSpan | null {
  const due = hours.filter((hour) => isSearchedAndSettled(now, hour, policy));
  const [first, last] = [due[0], due.at(-1)];
  if (first === undefined || last === undefined) return null;
  const wanted = (last.startsAt - first.startsAt) / HOUR_MS + 1;
  return { from: first.startsAt, buckets: Math.min(wanted, MAX_BUCKETS) };
}

/**
 * Returns the minutes of the hours that have not settled, as far as no later poll reads them again, or null. Until such an
 * hour gets its closing search, only a comparison of these minutes shows what the platform has shown late.
 */
export function planLateComparison(
  now: number,
  hours: readonly CoveredHour[],
  { settleMs, overlapMs }: { readonly settleMs: number; readonly overlapMs: number },
): CountedSpan | null {
  const open = hours.filter((hour) => hour.state === "open" && settledAt(hour, settleMs) > now);
  const through = open.at(-1)?.searchedThrough ?? null;
  // The polls still have to read the rest of an hour that was not searched to its end.
  const isSearched = ({ startsAt, searchedThrough }: CoveredHour) =>
    searchedThrough !== null && (searchedThrough >= startsAt + HOUR_MS || searchedThrough === through);
  const first = open.find(isSearched);
  if (first === undefined || through === null) return null;
  const minutes = Math.floor((through - overlapMs - first.startsAt) / MINUTE_MS);
  if (minutes <= 0) return null;
  return { from: first.startsAt, buckets: Math.min(minutes, MAX_BUCKETS), bucketMs: MINUTE_MS };
}

/** A minute that was searched in vain is searched again after this, then after twice as long. */
const FIRST_PAUSE_MS = 10 * MINUTE_MS;

/** A minute of which fewer events are stored than the platform counts, and its searches; times in epoch ms. */
export interface LackingMinute {
  readonly startsAt: number;
  readonly upstreamCount: number;
  readonly searches: number;
  readonly nextAt: number;
}

/**
 * Returns the spans to search for the events that compared minutes lack, and what to remember until the next comparison.
 * `before`: the minutes that the last one found. One that still lacks events, and has gained none on the platform, was
 * searched in vain.
 */
export function planLateSearches(
  now: number,
  minutes: readonly ComparedHour[],
  before: readonly LackingMinute[],
): { readonly spans: readonly Span[]; readonly lacking: readonly LackingMinute[] } {
  const known = new Map(before.map((minute) => [minute.startsAt, minute]));
  const times: number[] = [];
  const lacking = minutes.flatMap(({ startsAt, upstreamCount, differing }): LackingMinute[] => {
    if (!differing.some(isMissing)) return [];
    const last = known.get(startsAt);
    const isSame = last?.upstreamCount === upstreamCount;
    if (isSame && last.nextAt > now) return [last];
    times.push(startsAt, startsAt + MINUTE_MS - 1);
    const searches = isSame ? last.searches : 0;
    const nextAt = now + FIRST_PAUSE_MS * 2 ** searches;
    return [{ startsAt, upstreamCount, searches: searches + 1, nextAt }];
  });
  return { spans: planResolution(times), lacking };
}

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

interface ClosingPolicy {
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
  if (!isValidLook(search, hour, settledAt(hour, settleMs))) return 0;
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

/** Events this close together share one search. */
const GAP_MS = 60_000;
/** Maximum number of searches at once for the unresolved events of one hour. */
const MAX_SEARCHES = 10;

/**
 * Returns the spans to search for events at these times (epoch ms, ascending), with as little else as ten searches
 * allow. Times less than a minute apart share a span. If that leaves too many spans, the nearest ones are joined.
 */
export function planResolution(times: readonly number[]): Span[] {
  const spans: { from: number; to: number }[] = [];
  for (const at of times) {
    const last = spans.at(-1);
    if (last !== undefined && at - last.to < GAP_MS) last.to = at + 1;
    else spans.push({ from: at, to: at + 1 });
  }
  while (spans.length > MAX_SEARCHES) joinNearest(spans);
  return spans;
}

function joinNearest(spans: { from: number; to: number }[]): void {
  const distances = spans.slice(1).map(({ from }, index) => from - (spans[index]?.to ?? from));
  const nearest = distances.indexOf(Math.min(...distances));
  const [before, after] = spans.splice(nearest, 2);
  if (before !== undefined && after !== undefined)
    spans.splice(nearest, 0, { from: before.from, to: after.to });
}
