import { MINUTE_MS } from "#lib/units.ts";
import type { Span } from "#model/span.ts";
import { type ComparedHour, isMissing } from "./compare-counts.ts";
import { planResolution } from "./plan-resolution.ts";

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
