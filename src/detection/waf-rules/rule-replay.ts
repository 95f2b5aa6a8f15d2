/** Trends of a rule, and a replay of its counts with another sensitivity. */
import { z } from "zod";
import { readMinutesFrom, readTrend } from "#db/detection/trends.ts";
import {
  bucketStart,
  bucketStarts,
  minutesFrom,
  REPLAYED_DAYS,
  sensitivityOf,
} from "#detection/rules/detection-settings.ts";
import { formatWhole, many, showTime } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { startOfHour, WIDTH_SECONDS } from "#model/horizon.ts";
import { HOUR_STATUSES, WIDTH_NAMES } from "#model/kinds.ts";
import { IsoTime, Name, RuleId, Time, toIso, ZoneId, ZoneIds } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { readZones as readAskedZones } from "#operations/require-known.ts";
import { checkMinutes, checkOrder, checkSpan } from "#operations/span.ts";
import { readZones } from "#proof/coverage/read-zones.ts";
import { coverageOf } from "#proof/rules/hour-status.ts";
import { replayStore } from "../exclusions/replay-store.ts";

export const ReplayedSensitivity = z.object({ z: z.number(), floor: z.number() });

const number = (lowest: number, highest: number) =>
  z
    .string()
    .regex(/^\d{1,7}(\.\d{1,3})?$/, `must be a number from ${lowest} to ${highest}`)
    .transform(Number)
    .refine((value) => value >= lowest && value <= highest, `must be a number from ${lowest} to ${highest}`)
    .meta({ wire: { type: "number", minimum: lowest, maximum: highest } });

const Replayed = z.object({
  settings: ReplayedSensitivity,
  alerts: z.array(
    z.object({
      from: IsoTime.describe(
        "The end of the minute that reached the threshold. The service may find it up to a minute earlier.",
      ),
      to: IsoTime.describe("The end of the last minute that was not quiet."),
      isOpen: z.boolean(),
      severity: Name,
      kind: Name,
      peak: z.number(),
      score: z.number(),
    }),
  ),
});
type Replayed = z.infer<typeof Replayed>;

const RuleReplay = z
  .object({
    from: IsoTime,
    to: IsoTime,
    before: Replayed.describe("With the settings in force."),
    after: Replayed.describe("With the settings of the request."),
    yaml: Name.describe("The lines for the configuration file that keep the settings of the request."),
  })
  .meta({ id: "RuleReplay" });

export const replayRule = defineQuery({
  name: "rules.replay",
  summary: "Show which alerts other settings would have raised for a rule",
  description:
    "Replays the stored counts with the settings in force and with z and floor. Silences and routes are not applied. Nothing is changed.",
  http: ["GET", "/api/v1/rules/replay"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  heavy: "read",
  input: z.strictObject({
    zone: ZoneId,
    rule: RuleId,
    z: number(1, 10).optional().describe("Default: the setting in force."),
    floor: number(1, 1_000_000).optional().describe("Default: the setting in force."),
    days: number(1, REPLAYED_DAYS).default(30).describe("How many days of stored counts are replayed."),
  }),
  output: RuleReplay,
  command: {
    examples: ["rules replay --zone 101 --rule 942100 --z 5 --floor 100"],
    help: "Silences and routes are not applied, and nothing is changed. To keep the settings, copy the last lines into the configuration file.",
    say: ({ before, after, yaml }) => {
      const lines = [...describeReplayed("In force", before), ...describeReplayed("Replayed", after)];
      return [...lines, "", ...yaml.split("\n").map(escapeText)].join("\n");
    },
  },
  run: async ({ db, now: nowMs, service }, { zone, rule, days, ...asked }) => {
    const inForce = sensitivityOf(service.alerting().detection, zone, rule);
    const wanted = { z: asked.z ?? inForce.z, floor: asked.floor ?? inForce.floor };
    const isSame = wanted.z === inForce.z && wanted.floor === inForce.floor;
    const replayed = { zoneId: zone, ruleId: rule, days: Math.floor(days), nowMs };
    const [before, after = before] = await replayStore(db, replayed, isSame ? [inForce] : [inForce, wanted]);
    const show = (settings: typeof wanted, { alerts }: typeof before): Replayed => {
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
});

function describeReplayed(what: string, { settings: { z, floor }, alerts }: Replayed): string[] {
  return [
    `${what}, z ${z} and floor ${floor}: ${many(alerts.length, "alert")}`,
    ...alerts.map(
      ({ from, to, isOpen, severity, peak }) =>
        `  ${showTime(from)} to ${isOpen ? "now" : showTime(to)}   ${severity}, peak ${peak}`,
    ),
  ];
}

/** JSON is YAML: a rule's id stays one text, whatever is in it. The console's labels have the words of the comments. */
function toYaml(zone: number, rule: string, { z, floor }: z.infer<typeof ReplayedSensitivity>): string {
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

const DEFAULT_POINTS = { minute: 180, hour: 168, day: 90 } as const;
const MAX_POINTS = 5_000;
/** The most points of all zones together. */
const MAX_ALL_POINTS = 50_000;

const Point = z.object({
  zone: z.number().int(),
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
  zone: z.number().int().nullable().describe("Null for several zones: each point names its zone."),
  rule: Name.nullable(),
  width: z.enum(WIDTH_NAMES),
  from: IsoTime,
  to: IsoTime,
  points: z
    .array(Point)
    .describe(
      "All buckets of the span, zone by zone, oldest first. Buckets without events are included with zeros.",
    ),
});

export const showTrend = defineQuery({
  name: "trends.show",
  summary: "Count events over time",
  description: `The answer has every bucket that overlaps the span, at most ${MAX_POINTS} of a zone and ${MAX_ALL_POINTS} in all. Buckets are aligned to UTC.`,
  http: ["GET", "/api/v1/trends"],
  tag: "Trends",
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    zone: ZoneIds.default("all"),
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
      "trends show --zone all --from -7d --width day",
      "trends show --account agency-a --from -7d --width day",
      "trends show --zone 101 --rule 942100 --width day",
      "trends show --zone 101 --width minute --from -2h --json",
    ],
    help: "With the coverage sealed or searched the counts are complete; else they may be too low.",
    columns: [
      { head: "ZONE", get: ({ zone }) => String(zone) },
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
  run: async (asking, { zone, rule, width, ...asked }) => {
    const { db, now } = asking;
    const zones = await readAskedZones(asking, zone);
    const seconds = WIDTH_SECONDS[width];
    const widthMs = seconds * 1_000;
    const toMs = asked.to ?? now;
    checkOrder({ name: "from", ms: asked.from }, { name: "to", ms: toMs });
    const fromMs = bucketStart(asked.from ?? toMs - DEFAULT_POINTS[width] * widthMs, seconds);
    const max = Math.min(MAX_POINTS, Math.floor(MAX_ALL_POINTS / Math.max(zones.length, 1)));
    checkSpan(fromMs, toMs, { max, widthMs, what: `${width}s` });
    if (width === "minute") checkMinutes(fromMs, await readMinutesFrom(db, zones, minutesFrom(now)));
    const query = { zoneId: zones, ruleId: rule ?? null, width: seconds, fromMs, toMs };
    const keyOf = (zoneId: number, startsAt: number) => `${zoneId} ${startsAt}`;
    const buckets = new Map(
      (await readTrend(db, query)).map((bucket) => [keyOf(bucket.zoneId, bucket.startsAt), bucket]),
    );
    const span = { from: startOfHour(fromMs), to: toMs + widthMs, hasEvidence: false };
    const points: z.infer<typeof Point>[] = [];
    for (const zoneId of zones) {
      const [known] = await readZones(db, now, { zoneId, ...span });
      const hours = new Map((known?.hours ?? []).map((hour) => [startOfHour(hour.startsAt), hour]));
      for (const startsAt of bucketStarts(fromMs, toMs, seconds)) {
        const coverage = coverageOf(hours, { startsAt, endsAt: startsAt + widthMs }, now);
        const isCovered = coverage === "sealed" || coverage === "searched";
        const { total, blocked, logged, challenged, other } = buckets.get(keyOf(zoneId, startsAt)) ?? NONE;
        const counts = { total, blocked, logged, challenged, other };
        const at = { zone: zoneId, startsAt: toIso(startsAt), startsAtMs: startsAt };
        points.push({ ...at, ...counts, coverage, isCovered });
      }
    }
    const end = bucketStart(Math.max(toMs - 1, fromMs), seconds) + widthMs;
    const only = zone !== "all" && zones.length === 1 ? (zones[0] ?? null) : null;
    return { zone: only, rule: rule ?? null, width, from: toIso(fromMs), to: toIso(end), points };
  },
});

const NONE = { total: 0, blocked: 0, logged: 0, challenged: 0, other: 0 };
