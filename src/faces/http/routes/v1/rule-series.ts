import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { readMinutesFrom } from "#db/detection/kept-minutes.ts";
import { compareRuleDays, listAdvice, listSpikeSpans } from "#db/detection/rule-history.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { MARKS, WIDTH_NAMES, WIDTH_SECONDS } from "#model/kinds.ts";
import { IsoTime, known, RuleId, Time, toIso, toIsoOrNull, ZoneId } from "#operations/fields.ts";
import { readRuleSeries } from "#operations/read-rule-series.ts";
import { replayStore } from "#operations/replay-store.ts";
import { checkMinutes, checkSpan } from "#operations/span.ts";
import { ruleTitle } from "#stages/alerting/message/rule-title.ts";
import { maskNullable } from "#stages/archive/mask/mask-text.ts";
import { bucketEnd, bucketStart } from "#stages/detection/bucket.ts";
import { sensitivityOf } from "#stages/detection/detection-settings.ts";
import { minutesFrom, REPLAYED_DAYS } from "#stages/detection/minutes-kept.ts";
import type { ApiDeps } from "./api-deps.ts";

const DEFAULT_POINTS = { minute: 180, hour: 168, day: 28 } as const;
const MAX_DAYS = REPLAYED_DAYS;
const MAX_POINTS = 5_000;
const METRIC_DAYS = 28;
const MAX_ADVICE = 50;

const Sensitivity = z.object({ z: z.number(), floor: z.number() });
const number = (lowest: number, highest: number) =>
  z
    .string()
    .regex(/^\d{1,7}(\.\d{1,3})?$/, `must be a number from ${lowest} to ${highest}`)
    .transform(Number)
    .refine((value) => value >= lowest && value <= highest, `must be a number from ${lowest} to ${highest}`)
    .meta({ wire: { type: "number", minimum: lowest, maximum: highest } });

const SeriesQuery = z.strictObject({
  zone: ZoneId,
  rule: RuleId,
  width: z.enum(WIDTH_NAMES).default("hour"),
  from: Time.optional(),
  to: Time.optional().describe("Default: now."),
});

const Spike = z.object({
  id: z.number().int(),
  openedAt: IsoTime,
  closedAt: IsoTime.nullable(),
  severity: z.string(),
  mark: z.enum(MARKS).nullable().describe("What a person marked it as."),
  peak: z.number(),
  alertId: z.number().int().nullable(),
});

export const RuleSeries = z
  .object({
    zone: z.number().int(),
    rule: z.string(),
    title: z.string().nullable(),
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

const ReplayQuery = z.strictObject({
  zone: ZoneId,
  rule: RuleId,
  z: number(1, 10).optional().describe("Default: the setting in force."),
  floor: number(1, 1_000_000).optional().describe("Default: the setting in force."),
  days: number(1, MAX_DAYS).default(30).describe("How many days of stored counts are replayed."),
});

const Replayed = z.object({
  settings: Sensitivity,
  alerts: z.array(
    z.object({
      from: IsoTime.describe(
        "The time at which the alert fires, as firedAt of an alert: the end of the minute that reached the threshold.",
      ),
      to: IsoTime.describe("The end of the last minute that was not quiet."),
      isOpen: z.boolean(),
      severity: z.string(),
      kind: z.string(),
      peak: z.number(),
      score: z.number(),
    }),
  ),
});

export const RuleReplay = z
  .object({
    from: IsoTime,
    to: IsoTime,
    before: Replayed.describe("With the settings in force."),
    after: Replayed.describe("With the settings of the request."),
    yaml: z.string().describe("The lines for the configuration file that keep the settings of the request."),
  })
  .meta({ id: "RuleReplay" });

export const RuleFacts = z
  .object({
    advice: z
      .array(
        z.object({
          askedAt: IsoTime,
          success: z.boolean(),
          text: z.string().nullable().describe("Text of the platform's AI. Escape it."),
          errorKey: z.string().nullable(),
          spikeId: z.number().int().nullable(),
        }),
      )
      .describe("The platform's recommendations, newest first."),
    days: z
      .array(
        z.object({
          day: z.string(),
          platform: z.number().nullable().describe("The platform's own count; null if it was not read."),
          stored: z.number(),
          fetchedAt: IsoTime.nullable(),
        }),
      )
      .describe("The platform's own daily counts beside the stored ones, oldest first."),
  })
  .meta({ id: "RuleFacts" });

/** `/api/v1/rules/series`, `/replay` and `/facts`: one rule of one zone. The id is a parameter, because it may be any text. */
export function addRuleSeries(app: FastifyInstance, { archive, clock, service }: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const access = { scope: "read", zone: "zone" } as const;
  typed.get(
    "/api/v1/rules/series",
    {
      config: { access, refuses: [422], heavy: "read" },
      schema: {
        tags: ["Trends"],
        summary: "Show a rule's counts with the detector's expectation and threshold",
        description: `At most ${MAX_POINTS} buckets and ${MAX_DAYS} days. The detector runs over the stored minutes with the settings in force. Of a span whose minutes are no longer kept only the counts are known.`,
        querystring: SeriesQuery,
        response: { 200: RuleSeries },
      },
    },
    async ({ query: { zone, rule, width, ...asked } }) => {
      const now = clock();
      const seconds = WIDTH_SECONDS[width];
      const to = asked.to ?? now;
      const fromMs = bucketStart(asked.from ?? to - DEFAULT_POINTS[width] * seconds * 1_000, seconds);
      checkSpan(fromMs, to, { max: MAX_POINTS, widthMs: seconds * 1_000, what: `${width}s` });
      checkSpan(fromMs, to, { max: MAX_DAYS + 1, widthMs: DAY_MS, what: "days" });
      const kept = await readMinutesFrom(archive, zone, minutesFrom(now));
      if (width === "minute") checkMinutes(fromMs, kept);
      const span = { fromMs, toMs: bucketEnd(to - 1, seconds) };
      const settings = sensitivityOf(service.alerting().detection, zone, rule);
      const series = { zoneId: zone, ruleId: rule };
      const points = await readRuleSeries(archive, {
        ...series,
        ...span,
        ...settings,
        width: seconds,
        nowMs: now,
        hasMinutes: kept === null || fromMs >= kept,
      });
      const spikes = await listSpikeSpans(archive, series, span);
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
  );

  typed.get(
    "/api/v1/rules/replay",
    {
      config: { access, heavy: "read" },
      schema: {
        tags: ["Trends"],
        summary: "Show which alerts other settings would have raised for a rule",
        description:
          "Replays the stored counts with the settings in force and with z and floor. Silences and routes are not applied. Nothing is changed.",
        querystring: ReplayQuery,
        response: { 200: RuleReplay },
      },
    },
    async ({ query: { zone, rule, days, ...asked } }) => {
      const nowMs = clock();
      const inForce = sensitivityOf(service.alerting().detection, zone, rule);
      const wanted = { z: asked.z ?? inForce.z, floor: asked.floor ?? inForce.floor };
      const isSame = wanted.z === inForce.z && wanted.floor === inForce.floor;
      const replayed = { zoneId: zone, ruleId: rule, days: Math.floor(days), nowMs };
      const [before, after = before] = await replayStore(
        archive,
        replayed,
        isSame ? [inForce] : [inForce, wanted],
      );
      const show = (settings: typeof wanted, { alerts }: typeof before): z.infer<typeof Replayed> => {
        const shown = alerts.map(({ fromMinute, toMinute, isOpen, episode }) => ({
          from: toIso((fromMinute + 1) * MINUTE_MS),
          to: toIso(toMinute * MINUTE_MS),
          isOpen,
          severity: episode.severity,
          kind: episode.kind,
          peak: episode.peak,
          score: episode.score,
        }));
        return { settings, alerts: shown };
      };
      return {
        from: toIso(nowMs - Math.floor(days) * DAY_MS),
        to: toIso(nowMs),
        before: show(inForce, before),
        after: show(wanted, after),
        yaml: toYaml(zone, rule, wanted),
      };
    },
  );

  typed.get(
    "/api/v1/rules/facts",
    {
      config: { access },
      schema: {
        tags: ["Trends"],
        summary: "Show the recommendations for a rule and the platform's own counts",
        querystring: z.strictObject({ zone: ZoneId, rule: RuleId }),
        response: { 200: RuleFacts },
      },
    },
    async ({ query: { zone, rule }, caller }) => {
      const { masked } = known(caller);
      const series = { zoneId: zone, ruleId: rule };
      const advice = await listAdvice(archive, series, MAX_ADVICE);
      const days = await compareRuleDays(archive, series, clock() - METRIC_DAYS * DAY_MS);
      return {
        advice: advice.map(({ askedAt, text, ...rest }) => ({
          ...rest,
          askedAt: toIso(askedAt),
          text: masked ? maskNullable(text) : text,
        })),
        days: days.map(({ fetchedAt, ...day }) => ({ ...day, fetchedAt: toIsoOrNull(fetchedAt) })),
      };
    },
  );
}

/** JSON is YAML: a rule's id stays one text, whatever is in it. The console's labels have the words of the comments. */
function toYaml(zone: number, rule: string, { z, floor }: z.infer<typeof Sensitivity>): string {
  return [
    "detection:",
    "  overrides:",
    `    - zone: [${zone}]`,
    `      rule: [${JSON.stringify(rule)}]`,
    `      z: ${z} # score of a spike`,
    `      floor: ${floor} # fewest events of a spike`,
    "",
  ].join("\n");
}
