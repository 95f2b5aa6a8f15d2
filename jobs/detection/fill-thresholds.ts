import type { Queryable } from "#db/client.ts";
import { readDaysBefore } from "#db/detection/rule-metrics.ts";
import { type HourCounts, readHourCounts } from "#db/detection/spikes.ts";
import type { Candidate } from "#detection/rules/assess-series.ts";
import {
  advanceHours,
  createHourHistory,
  type HourHistory,
  putHour,
  type RulePrior,
  resetHours,
  toRulePrior,
} from "#detection/rules/thresholds/hour-history.ts";
import {
  computeThresholds,
  countHistory,
  ENOUGH_HOURS,
  HISTORY_HOURS,
  type ThresholdCache,
} from "#detection/rules/thresholds/thresholds.ts";
import { HOUR_MS } from "#lib/units.ts";
import { keyOf, type SeriesKey } from "#model/fingerprint.ts";

/** A series and the hours of which its thresholds are asked. */
type Watched = Pick<
  Candidate<SeriesKey>,
  "zoneId" | "ruleId" | "z" | "floor" | "fingerprint" | "isUnknownHour" | "testedHours"
>;

/** Returns the key of a series' thresholds in the cache. */
export function thresholdsKey({ zoneId, ruleId, z, floor, fingerprint }: Watched, hour: number): string {
  return JSON.stringify([zoneId, hour, z, floor, fingerprint, ruleId]);
}

/** Computes the thresholds that are missing from the cache, with one read for all of them. */
export async function fillThresholds(
  db: Queryable,
  { nowMs, candidates }: { nowMs: number; candidates: readonly Watched[] },
  cache: ThresholdCache,
): Promise<void> {
  const isMissing = (one: Watched) =>
    one.testedHours.some((hour) => cache.get(thresholdsKey(one, hour), nowMs) === undefined);
  const missing = new Map(candidates.filter(isMissing).map((one) => [keyOf(one), one]));
  if (missing.size === 0) return;
  const oldest = Math.min(...[...missing.values()].flatMap(({ testedHours }) => testedHours));
  const range = { fromHour: oldest - HISTORY_HOURS, toHour: Math.floor(nowMs / HOUR_MS) };
  const read = await readHourCounts(db, [...missing.values()], range);
  const priors = await readPriors(db, read, missing, oldest);
  const history = createHourHistory();
  for (const counts of read) {
    const key = keyOf(counts);
    const candidate = missing.get(key);
    if (candidate === undefined) continue;
    const remember = createMemory(history, counts);
    const { z, floor, isUnknownHour } = candidate;
    const known = priors.get(key);
    const policy = { z, floor, isUnknownHour, prior: known?.prior ?? null };
    for (const hour of candidate.testedHours.toSorted((a, b) => a - b)) {
      remember(hour);
      // A rule that the platform has counted for weeks is not new, even if its first events have only just arrived.
      const firstHour = Math.min(history.firstHour, known?.firstHour ?? Number.POSITIVE_INFINITY);
      const thresholds = computeThresholds(history, hour, policy);
      cache.set(thresholdsKey(candidate, hour), { thresholds, firstHour }, nowMs);
    }
  }
}

/** Returns a function that puts the hours before the given one into the history. Hours are given in ascending order. */
function createMemory(history: HourHistory, { hours, firstHour }: HourCounts): (before: number) => void {
  resetHours(history);
  let next = 0;
  return (before) => {
    for (let one = hours[next]; one !== undefined && one[0] < before; one = hours[(next += 1)])
      putHour(history, one[0], one[1], one, 2);
    advanceHours(history, before);
    history.firstHour = firstHour ?? Number.POSITIVE_INFINITY;
  };
}

/** Returns the platform's earlier counts for series whose own history before `hour` is too short. */
async function readPriors(
  db: Queryable,
  read: readonly HourCounts[],
  candidates: ReadonlyMap<string, Watched>,
  hour: number,
): Promise<ReadonlyMap<string, { prior: RulePrior | null; firstHour: number | null }>> {
  const history = createHourHistory();
  const young = read.filter((counts) => {
    const candidate = candidates.get(keyOf(counts));
    if (candidate === undefined) return false;
    createMemory(history, counts)(hour);
    return countHistory(history, hour, candidate) < ENOUGH_HOURS;
  });
  if (young.length === 0) return new Map();
  const before = await readDaysBefore(db, young);
  return new Map(
    before.map((days) => [keyOf(days), { prior: toRulePrior(days.totals), firstHour: days.firstHour }]),
  );
}
