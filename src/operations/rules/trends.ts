import { z } from "zod";
import { readMinutesFrom, readTrend } from "#db/detection/trends.ts";
import { formatWhole, showTime } from "#lib/format.ts";
import { startOfHour } from "#model/horizon.ts";
import { HOUR_STATUSES, WIDTH_NAMES, WIDTH_SECONDS } from "#model/kinds.ts";
import { coverageOf } from "#stages/coverage/hour-status.ts";
import { bucketStart, bucketStarts } from "#stages/detection/bucket.ts";
import { minutesFrom } from "#stages/detection/minutes-kept.ts";
import { IsoTime, Name, RuleId, Time, toIso, ZoneId } from "../fields.ts";
import { defineQuery } from "../operation.ts";
import { readZones } from "../read-zones.ts";
import { checkMinutes, checkOrder, checkSpan } from "../span.ts";

const DEFAULT_POINTS = { minute: 180, hour: 168, day: 90 } as const;
const MAX_POINTS = 5_000;

const Point = z.object({
  startsAt: IsoTime,
  startsAtMs: z.number().int().describe("The same time in epoch milliseconds."),
  total: z.number().int(),
  blocked: z.number().int(),
  logged: z.number().int(),
  challenged: z.number().int(),
  other: z.number().int(),
  coverage: z
    .enum(HOUR_STATUSES)
    .describe(
      "The worst coverage state of the hours in the bucket. With sealed and searched, the counts are complete so far.",
    ),
  isCovered: z.boolean().describe("False means that the count may be too low."),
});

const Trend = z.object({
  zone: z.number().int(),
  rule: Name.nullable(),
  width: z.enum(WIDTH_NAMES),
  from: IsoTime,
  to: IsoTime,
  points: z
    .array(Point)
    .describe("All buckets of the span, oldest first. Buckets without events are included with zeros."),
});

export const showTrend = defineQuery({
  name: "trends.show",
  summary: "Count events over time",
  description: `The answer has every bucket that overlaps the span, at most ${MAX_POINTS}. Buckets are aligned to UTC.`,
  http: ["GET", "/api/v1/trends"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  refuses: [422],
  input: z.strictObject({
    zone: ZoneId,
    rule: RuleId.optional().describe(
      "Id of one rule. An empty text means events without a rule. Without this parameter all rules are counted together.",
    ),
    width: z.enum(WIDTH_NAMES).default("hour"),
    from: Time.optional(),
    to: Time.optional().describe("Default: now."),
  }),
  output: Trend,
  command: {
    examples: [
      "trends show --zone 101",
      "trends show --zone 101 --rule 942100 --width day",
      "trends show --zone 101 --width minute --from -2h --json",
    ],
    help: "With the coverage sealed or searched the counts are complete; else they may be too low.",
    columns: [
      { head: "FROM (UTC)", get: ({ startsAtMs }) => showTime(startsAtMs) },
      { head: "EVENTS", get: ({ total }) => formatWhole(total) },
      { head: "BLOCKED", get: ({ blocked }) => formatWhole(blocked) },
      { head: "CHALLENGED", get: ({ challenged }) => formatWhole(challenged) },
      { head: "LOGGED", get: ({ logged }) => formatWhole(logged) },
      { head: "OTHER", get: ({ other }) => formatWhole(other) },
      {
        head: "COVERAGE",
        get: ({ coverage, isCovered }) => (isCovered ? coverage : { text: coverage, style: "red" }),
      },
    ],
  },
  run: async ({ db, now }, { zone, rule, width, ...asked }) => {
    const seconds = WIDTH_SECONDS[width];
    const widthMs = seconds * 1_000;
    const toMs = asked.to ?? now;
    checkOrder({ name: "from", ms: asked.from }, { name: "to", ms: toMs });
    const fromMs = bucketStart(asked.from ?? toMs - DEFAULT_POINTS[width] * widthMs, seconds);
    checkSpan(fromMs, toMs, { max: MAX_POINTS, widthMs, what: `${width}s` });
    if (width === "minute") checkMinutes(fromMs, await readMinutesFrom(db, zone, minutesFrom(now)));
    const query = { zoneId: zone, ruleId: rule ?? null, width: seconds, fromMs, toMs };
    const buckets = new Map((await readTrend(db, query)).map((bucket) => [bucket.startsAt, bucket]));
    const span = { zoneId: zone, from: startOfHour(fromMs), to: toMs + widthMs, hasEvidence: false };
    const [known] = await readZones(db, now, span);
    const hours = new Map((known?.hours ?? []).map((hour) => [startOfHour(hour.startsAt), hour]));
    const points = Array.from(bucketStarts(fromMs, toMs, seconds), (startsAt) => {
      const coverage = coverageOf(hours, { startsAt, endsAt: startsAt + widthMs }, now);
      const isCovered = coverage === "sealed" || coverage === "searched";
      const { total, blocked, logged, challenged, other } = buckets.get(startsAt) ?? NONE;
      const counts = { total, blocked, logged, challenged, other };
      return { startsAt: toIso(startsAt), startsAtMs: startsAt, ...counts, coverage, isCovered };
    });
    const end = bucketStart(Math.max(toMs - 1, fromMs), seconds) + widthMs;
    return { zone, rule: rule ?? null, width, from: toIso(fromMs), to: toIso(end), points };
  },
});

const NONE = { total: 0, blocked: 0, logged: 0, challenged: 0, other: 0 };
