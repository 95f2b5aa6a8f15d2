import { z } from "zod";
import { listSpikeSpans } from "#db/detection/rule-history.ts";
import { readMinutesFrom } from "#db/detection/trends.ts";
import { formatRounded, showTime } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { MARKS, WIDTH_NAMES, WIDTH_SECONDS } from "#model/kinds.ts";
import { ruleTitle } from "#stages/alerting/message/rule-title.ts";
import { bucketEnd, bucketStart } from "#stages/detection/bucket.ts";
import { sensitivityOf } from "#stages/detection/detection-settings.ts";
import { minutesFrom, REPLAYED_DAYS } from "#stages/detection/minutes-kept.ts";
import { IsoTime, Name, RuleId, Text, Time, toIso, toIsoOrNull, ZoneId } from "../fields.ts";
import { defineQuery } from "../operation.ts";
import { checkMinutes, checkSpan } from "../span.ts";
import { readRuleSeries } from "./read-rule-series.ts";
import { Sensitivity } from "./rule-replay.ts";

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
    settings: Sensitivity.describe("The sensitivity in force for this rule."),
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
