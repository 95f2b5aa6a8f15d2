/** The counts and thresholds of a rule over time. */
import { z } from "zod";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import type { Queryable } from "#db/client.ts";
import { listSpikeSpans } from "#db/detection/rule-history.ts";
import { readMinutesFrom, readReplayCounts, readTrend, type TrendQuery } from "#db/detection/trends.ts";
import {
  bucketEnd,
  bucketStart,
  bucketStarts,
  minutesFrom,
  REPLAYED_DAYS,
  type Sensitivity,
  sensitivityOf,
} from "#detection/rules/detection-settings.ts";
import { isSpiking } from "#detection/rules/episode.ts";
import { createSeriesWatch, takeMinute, thresholdsAt } from "#detection/rules/series-watch.ts";
import { formatRounded, showTime } from "#lib/format.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { WIDTH_SECONDS } from "#model/horizon.ts";
import { MARKS, WIDTH_NAMES } from "#model/kinds.ts";
import { IsoTime, Name, RuleId, Text, Time, toIso, toIsoOrNull, ZoneId } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { checkMinutes, checkSpan } from "#operations/span.ts";
import { HISTORY_MS, readSeriesPolicies } from "../exclusions/replay-store.ts";
import { ReplayedSensitivity } from "./rule-replay.ts";

const DEFAULT_POINTS = { minute: 180, hour: 168, day: 28 } as const;
const MAX_DAYS = REPLAYED_DAYS;
const MAX_POINTS = 5_000;

const Spike = z.object({
  id: z.number().int(),
  openedAt: IsoTime,
  closedAt: IsoTime.nullable(),
  severity: Name,
  mark: z.enum(MARKS).nullable().describe("What a person marked it as."),
  peak: z.number(),
  alertId: z.number().int().nullable(),
  verdict: Text.nullable().describe("The latest verdict, in a few words."),
});

const RuleSeries = z
  .object({
    zone: z.number().int(),
    rule: Name,
    title: Name.nullable(),
    width: z.enum(WIDTH_NAMES),
    settings: ReplayedSensitivity.describe("The sensitivity in force for this rule."),
    points: z
      .array(
        z.object({
          startsAtMs: z.number().int(),
          count: z.number(),
          usual: z
            .number()
            .nullable()
            .describe(
              "The rule's average at this time of day for a bucket of this width. Null before its first event.",
            ),
          threshold: z
            .number()
            .nullable()
            .describe("The count from which the bucket is a spike. Null for a day."),
          isSpiking: z.boolean(),
        }),
      )
      .describe("All buckets of the span, oldest first."),
    spikes: z.array(Spike).describe("The spikes that were open in the span, oldest first."),
  })
  .meta({ id: "RuleSeries" });

const show = (value: number | null) => (value === null ? "-" : formatRounded(value));

/** The rule's id is in the query, because it may be any text. */
export const showRuleSeries = defineQuery({
  name: "rules.series",
  summary: "Show a rule's counts with the detector's expectation and threshold",
  description: `At most ${MAX_POINTS} buckets and ${MAX_DAYS} days. The detector runs over the stored minutes with the settings in force. Of a span whose minutes are no longer kept only the counts are known.`,
  http: ["GET", "/api/v1/rules/series"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  refuses: [422],
  heavy: "read",
  input: z.strictObject({
    zone: ZoneId,
    rule: RuleId,
    width: z.enum(WIDTH_NAMES).default("hour"),
    from: Time.optional(),
    to: Time.optional().describe("Default: now."),
  }),
  output: RuleSeries,
  command: {
    examples: [
      "rules series --zone 101 --rule 942100",
      "rules series --zone 101 --rule 942100 --width minute --from -2h --json",
    ],
    help: "USUAL is the rule's average at this time of day. A bucket whose count reaches THRESHOLD is a spike.",
    columns: [
      { head: "FROM (UTC)", get: ({ startsAtMs }) => showTime(startsAtMs) },
      {
        head: "EVENTS",
        get: ({ count, isSpiking }) =>
          isSpiking ? { text: formatRounded(count), style: "red" } : formatRounded(count),
      },
      { head: "USUAL", get: ({ usual }) => show(usual) },
      { head: "THRESHOLD", get: ({ threshold }) => show(threshold) },
      { head: "SPIKE", get: ({ isSpiking }) => (isSpiking ? "yes" : "") },
    ],
  },
  run: async ({ db, now, service }, { zone, rule, width, ...asked }) => {
    const seconds = WIDTH_SECONDS[width];
    const to = asked.to ?? now;
    const fromMs = bucketStart(asked.from ?? to - DEFAULT_POINTS[width] * seconds * 1_000, seconds);
    checkSpan(fromMs, to, { max: MAX_POINTS, widthMs: seconds * 1_000, what: `${width}s` });
    checkSpan(fromMs, to, { max: MAX_DAYS + 1, widthMs: DAY_MS, what: "days" });
    const kept = await readMinutesFrom(db, zone, minutesFrom(now));
    if (width === "minute") checkMinutes(fromMs, kept);
    const span = { fromMs, toMs: bucketEnd(to - 1, seconds) };
    const settings = sensitivityOf(service.alerting().detection, zone, rule);
    const series = { zoneId: zone, ruleId: rule };
    const points = await readRuleSeries(db, {
      ...series,
      ...span,
      ...settings,
      width: seconds,
      nowMs: now,
      hasMinutes: kept === null || fromMs >= kept,
    });
    const spikes = await listSpikeSpans(db, series, span);
    return {
      zone,
      rule,
      title: ruleTitle(rule),
      width,
      settings,
      points: points.map(({ startsAt, ...point }) => ({ startsAtMs: startsAt, ...point })),
      spikes: spikes.map((spike) => ({
        ...spike,
        openedAt: toIso(spike.openedAt),
        closedAt: toIsoOrNull(spike.closedAt),
      })),
    };
  },
});

interface RuleSeriesQuery extends Sensitivity {
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

interface SeriesPoint {
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
async function readRuleSeries(db: Queryable, query: RuleSeriesQuery): Promise<SeriesPoint[]> {
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
