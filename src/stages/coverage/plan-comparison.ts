import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { CoveredHour } from "#model/covered-hour.ts";
import type { Span } from "#model/horizon.ts";
import { type ComparedHour, isMissing } from "./compare-counts.ts";
import { settledAt } from "./hour-proof.ts";
import { isSearchedAndSettled } from "./plan-closing-search.ts";
import { planResolution } from "./plan-resolution.ts";

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
