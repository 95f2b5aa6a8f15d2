import type { Queryable } from "#db/client.ts";
import { readReplayCounts, readTrend, type TrendQuery } from "#db/detection/trends.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { bucketStarts } from "#stages/detection/bucket.ts";
import type { Sensitivity } from "#stages/detection/detection-settings.ts";
import { isSpiking } from "#stages/detection/judge-minute.ts";
import { createSeriesWatch, takeMinute, thresholdsAt } from "#stages/detection/series-watch.ts";
import { HISTORY_MS, readSeriesPolicies } from "../replay-store.ts";

export interface RuleSeriesQuery extends Sensitivity {
  readonly zoneId: number;
  readonly ruleId: string;
  /** A multiple of the width, as is `toMs`. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Seconds: a minute, an hour or a day. */
  readonly width: 60 | 3_600 | 86_400;
  readonly nowMs: number;
  /** Whether the minutes of the span are still kept. */
  readonly hasMinutes: boolean;
}

export interface SeriesPoint {
  /** Epoch ms. */
  readonly startsAt: number;
  readonly count: number;
  /** The rule's average at this time of day, for a bucket of this width; null before the rule's first event. */
  readonly usual: number | null;
  /** The count of a bucket of this width from which it is a spike; null for a day, which is no window of the detector. */
  readonly threshold: number | null;
  /** Whether a window that ends in the bucket reached its threshold. */
  readonly isSpiking: boolean;
}

/** The window of the detector that each width is compared with, and the window's minutes. */
const WINDOW_OF = {
  60: { index: 0, minutes: 3 },
  3600: { index: 2, minutes: 60 },
  86400: { index: 2, minutes: 60 },
};

/**
 * Runs the detector over a rule's stored minutes and returns count, expectation and threshold of each bucket. Without the
 * minutes only the counts are known.
 */
export async function readRuleSeries(db: Queryable, query: RuleSeriesQuery): Promise<SeriesPoint[]> {
  const { zoneId, ruleId, fromMs, width, nowMs, z, floor } = query;
  const widthMs = width * 1_000;
  const toMs = Math.min(query.toMs, Math.ceil(nowMs / widthMs) * widthMs);
  if (!query.hasMinutes) return readCounts(db, { zoneId, ruleId, width, fromMs, toMs });
  const historyMs = fromMs - HISTORY_MS;
  const rows = await readReplayCounts(db, { zoneId, ruleId }, { fromMs: historyMs, toMs });
  const policies = await readSeriesPolicies(db, { zoneId, rules: [ruleId], fromMs: historyMs, nowMs });
  const points = new Map<number, { -readonly [Key in keyof SeriesPoint]: SeriesPoint[Key] }>();
  for (let startsAt = fromMs; startsAt < toMs; startsAt += widthMs)
    points.set(startsAt, { startsAt, count: 0, usual: null, threshold: null, isSpiking: false });
  const first = rows[0];
  if (first === undefined) return [...points.values()];
  // The first minute that is known may lie long before: what counts is that the rule was there.
  const firstMinute = Math.max(first.minute, historyMs / MINUTE_MS);
  const lastMinute = Math.min(toMs, nowMs) / MINUTE_MS;
  const counts = new Int32Array(Math.max(0, Math.ceil(lastMinute) - firstMinute));
  for (const { minute, count } of rows) if (minute >= firstMinute) counts[minute - firstMinute] = count;
  const { index, minutes } = WINDOW_OF[width];
  const share = width === 60 ? 1 / minutes : 1;
  const policy = { ...policies.get(ruleId), z, floor };
  const watch = createSeriesWatch();
  for (const [i, count] of counts.entries()) {
    const minute = firstMinute + i;
    takeMinute(watch, minute, count, policy, () => undefined);
    const at = minute * MINUTE_MS;
    const point = points.get(at - (at % widthMs));
    if (point === undefined) continue;
    const thresholds = thresholdsAt(watch, minute, policy);
    point.count += count;
    point.isSpiking ||= isSpiking(watch.sums, thresholds);
    const usual = (thresholds.usual[index] as number) * share;
    // A day's expectation is the sum of its hours; an hour's is the same in each of its minutes.
    if (width === 86_400) point.usual = (point.usual ?? 0) + usual / 60;
    else {
      point.usual = usual;
      point.threshold = (thresholds.threshold[index] as number) * share;
    }
  }
  return [...points.values()];
}

async function readCounts(db: Queryable, query: TrendQuery): Promise<SeriesPoint[]> {
  const { width, fromMs, toMs } = query;
  const totals = new Map((await readTrend(db, query)).map(({ startsAt, total }) => [startsAt, total]));
  return Array.from(bucketStarts(fromMs, toMs, width), (startsAt) => {
    const count = totals.get(startsAt) ?? 0;
    return { startsAt, count, usual: null, threshold: null, isSpiking: false };
  });
}
