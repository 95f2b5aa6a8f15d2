import type { Queryable } from "#db/client.ts";
import { readDaysBefore } from "#db/detection/rule-metrics.ts";
import { type HourCounts, readHourCounts } from "#db/detection/spikes.ts";
import { HOUR_MS } from "#lib/units.ts";
import { keyOf, type SeriesKey } from "#model/series-key.ts";
import type { Candidate, TickSpan } from "#stages/detection/plan-tick.ts";
import {
  createHourHistory,
  type HourHistory,
  putHour,
  resetHours,
} from "#stages/detection/thresholds/hour-history.ts";
import { type RulePrior, toRulePrior } from "#stages/detection/thresholds/rule-prior.ts";
import type { ThresholdCache } from "#stages/detection/thresholds/threshold-cache.ts";
import {
  computeThresholds,
  countHistory,
  ENOUGH_HOURS,
  HISTORY_HOURS,
} from "#stages/detection/thresholds/thresholds.ts";

type Watched = Candidate<SeriesKey>;

/** Returns the key of a series' thresholds in the cache. */
export function thresholdsKey({ zoneId, ruleId, z, floor, fingerprint }: Watched, hour: number): string {
  return JSON.stringify([zoneId, hour, z, floor, fingerprint, ruleId]);
}

/** Computes the thresholds that are missing from the cache, with one read for all of them. */
export async function fillThresholds(
  db: Queryable,
  { span, candidates }: { span: TickSpan; candidates: readonly Watched[] },
  cache: ThresholdCache,
): Promise<void> {
  const { nowMs } = span;
  const isMissing = (one: Watched) =>
    one.testedHours.some((hour) => cache.get(thresholdsKey(one, hour), nowMs) === undefined);
  const missing = new Map(candidates.filter(isMissing).map((one) => [keyOf(one), one]));
  if (missing.size === 0) return;
  const nowHour = Math.floor(nowMs / HOUR_MS);
  const range = { fromHour: nowHour - HISTORY_HOURS - 1, toHour: nowHour };
  const read = await readHourCounts(db, [...missing.values()], range);
  const priors = await readPriors(db, read, missing, nowHour);
  const history = createHourHistory();
  for (const remembered of read) {
    const key = keyOf(remembered);
    const candidate = missing.get(key);
    if (candidate === undefined) continue;
    remember(history, remembered);
    const { z, floor, isUnknownHour } = candidate;
    const known = priors.get(key);
    const policy = { z, floor, isUnknownHour, prior: known?.prior ?? null };
    // A rule that the platform has counted for weeks is not new, even if its first events have only just arrived.
    const firstHour = Math.min(history.firstHour, known?.firstHour ?? Number.POSITIVE_INFINITY);
    for (const hour of candidate.testedHours) {
      const thresholds = computeThresholds(history, hour, policy);
      cache.set(thresholdsKey(candidate, hour), { thresholds, firstHour }, nowMs);
    }
  }
}

function remember(history: HourHistory, { hours, firstHour }: HourCounts): void {
  resetHours(history);
  for (const [hour, events, ...peaks] of hours) putHour(history, hour, events, peaks);
  history.firstHour = firstHour ?? Number.POSITIVE_INFINITY;
}

/** Returns the platform's earlier counts for series whose own history is too short. */
async function readPriors(
  db: Queryable,
  read: readonly HourCounts[],
  candidates: ReadonlyMap<string, Watched>,
  nowHour: number,
): Promise<ReadonlyMap<string, { prior: RulePrior | null; firstHour: number | null }>> {
  const history = createHourHistory();
  const young = read.filter((remembered) => {
    const candidate = candidates.get(keyOf(remembered));
    if (candidate === undefined) return false;
    remember(history, remembered);
    return countHistory(history, nowHour, candidate) < ENOUGH_HOURS;
  });
  if (young.length === 0) return new Map();
  const before = await readDaysBefore(db, young);
  return new Map(
    before.map((days) => [keyOf(days), { prior: toRulePrior(days.totals), firstHour: days.firstHour }]),
  );
}
