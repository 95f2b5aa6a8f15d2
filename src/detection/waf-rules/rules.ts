/** The list of rules and the facts of one. */
import { z } from "zod";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import { compareRuleDays, listAdvice } from "#db/detection/rule-history.ts";
import { type RuleRow, readRuleSparklines, readRules } from "#db/detection/rules.ts";
import { bucketEnd, bucketStart } from "#detection/rules/detection-settings.ts";
import { formatRounded, formatWhole, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { keyOf } from "#model/fingerprint.ts";
import { type BucketWidth, RULE_SORTS } from "#model/kinds.ts";
import {
  IsoTime,
  ListZones,
  Name,
  pageOf,
  pageQuery,
  RuleId,
  Text,
  Time,
  toIso,
  toIsoOrNull,
  toPage,
  visibleZones,
  wholeNumber,
  ZoneId,
} from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { checkSpan } from "#operations/span.ts";
import { replayRule } from "./rule-replay.ts";
import { showRuleSeries } from "./rule-series.ts";

const METRIC_DAYS = 28;
const MAX_ADVICE = 50;
const MAX_TEXT_CHARS = 2_000;

const RuleFacts = z
  .object({
    advice: z
      .array(
        z.object({
          askedAt: IsoTime,
          success: z.boolean(),
          text: Text.nullable().describe("Text of the platform's AI. Escape it."),
          errorKey: Name.nullable(),
          spikeId: z.number().int().nullable(),
        }),
      )
      .describe("The platform's recommendations, newest first."),
    days: z
      .array(
        z.object({
          day: Name,
          platform: z.number().nullable().describe("The platform's own count; null if it was not read."),
          stored: z.number(),
          fetchedAt: IsoTime.nullable(),
        }),
      )
      .describe("The platform's own daily counts beside the stored ones, oldest first."),
  })
  .meta({ id: "RuleFacts" });
type RuleFacts = z.infer<typeof RuleFacts>;

const showRuleFacts = defineQuery({
  name: "rules.facts",
  summary: "Show the recommendations for a rule and the platform's own counts",
  http: ["GET", "/api/v1/rules/facts"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  input: z.strictObject({ zone: ZoneId, rule: RuleId }),
  output: RuleFacts,
  command: {
    examples: ["rules facts --zone 101 --rule 942100"],
    help: "Each day has the events that Longwatch has stored and those that the platform has counted.",
    say: ({ advice, days }) => {
      const lines = [...days.map(describeDay), ...advice.map(describeAdvice)];
      return `${lines.length === 0 ? "No daily count and no recommendation is stored." : lines.join("\n")}\n`;
    },
  },
  run: async ({ db, now }, { zone, rule }) => {
    const series = { zoneId: zone, ruleId: rule };
    const advice = await listAdvice(db, series, MAX_ADVICE);
    const days = await compareRuleDays(db, series, now - METRIC_DAYS * DAY_MS);
    return {
      advice: advice.map(({ askedAt, ...rest }) => ({ ...rest, askedAt: toIso(askedAt) })),
      days: days.map(({ fetchedAt, ...day }) => ({ ...day, fetchedAt: toIsoOrNull(fetchedAt) })),
    };
  },
});

function describeDay({ day, stored, platform }: RuleFacts["days"][number]): string {
  return `${day}   ${formatWhole(stored)} stored, ${platform === null ? "the platform's count was not read" : `${formatWhole(platform)} counted by the platform`}`;
}

function describeAdvice({ askedAt, text, errorKey }: RuleFacts["advice"][number]): string {
  return `${showTime(askedAt)}   ${text === null ? `no recommendation (${errorKey ?? "unknown"})` : toLine(text, MAX_TEXT_CHARS)}`;
}

const MAX_DAYS = 400;
const MAX_POINTS = 100;
const MAX_TITLE_CHARS = 60;

const Rule = z
  .object({
    zoneId: z.number().int(),
    ruleId: Name.describe("An empty text stands for events without a rule."),
    title: Name.nullable().describe("Title of a managed rule; null for other rules."),
    total: z.number().int(),
    blocked: z.number().int(),
    logged: z.number().int(),
    challenged: z.number().int(),
    other: z.number().int(),
    lastSeen: IsoTime.describe(
      "The minute of the last event in the span. If the minutes are no longer kept, the start of its hour or day.",
    ),
    baseline: z
      .number()
      .nullable()
      .describe(
        "Expected number of events in a span of this length, from the 28 days before; null if those days were not watched.",
      ),
    openSpikeId: z.number().int().nullable(),
    sparkline: z.array(z.number()).nullable().describe("Oldest part first. Null without points."),
  })
  .meta({ id: "Rule" });

const listRules = defineQuery({
  name: "rules.list",
  summary: "Rank rules by their events",
  description:
    "All pages use the span of the first page. The counts of the newest hours still grow while you read, so a rule can move from a later page to an earlier one and be missed. To get every rule exactly once, sort by rule, or choose a span that ends before the first hour that is open in the coverage.",
  http: ["GET", "/api/v1/rules"],
  tag: "Trends",
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    zone: ListZones,
    from: Time.optional().describe("Default: one day before `to`."),
    to: Time.optional().describe("Default: now."),
    sort: z
      .enum(RULE_SORTS)
      .default("total")
      .describe(
        "The rule with the highest number comes first. With rule, the order is by zone and rule id, which new events do not change.",
      ),
    points: wholeNumber(1, MAX_POINTS)
      .optional()
      .describe(
        "Adds the trend of each rule: its events in at most so many parts of the span. The last part may be shorter.",
      ),
    ...pageQuery({ fallback: 50, most: 500 }),
  }),
  output: pageOf(Rule).extend({
    from: IsoTime,
    to: IsoTime.describe("The counted span is the requested span, extended to whole minutes, hours or days."),
  }),
  command: {
    examples: [
      "rules list",
      "rules list --zone 101 --from -2h --sort blocked",
      "rules list --points 24 --json",
    ],
    help: "USUAL is the expected number of events in a span of this length. SPIKE is the number of the rule's open spike.",
    limit: 50,
    columns: [
      { head: "ZONE", get: ({ zoneId }) => String(zoneId) },
      { head: "RULE", get: ({ ruleId }) => (ruleId === "" ? "-" : toLine(ruleId, 100)) },
      { head: "EVENTS", get: ({ total }) => formatWhole(total) },
      { head: "USUAL", get: ({ baseline }) => (baseline === null ? "-" : formatRounded(baseline)) },
      { head: "BLOCKED", get: ({ blocked }) => formatWhole(blocked) },
      { head: "CHALLENGED", get: ({ challenged }) => formatWhole(challenged) },
      { head: "LOGGED", get: ({ logged }) => formatWhole(logged) },
      { head: "LAST SEEN (UTC)", get: ({ lastSeen }) => showTime(lastSeen) },
      { head: "SPIKE", get: ({ openSpikeId: id }) => (id === null ? "-" : { text: `#${id}`, style: "red" }) },
      { head: "TITLE", get: ({ title }) => (title === null ? "-" : toLine(title, MAX_TITLE_CHARS)) },
    ],
    empty: "No rule was triggered in this span.",
  },
  run: async ({ db, now, cursors, caller }, { zone, sort, points, limit, after, ...asked }) => {
    const list = `rules:${JSON.stringify([zone, sort, asked.from, asked.to])}`;
    const position = cursors.readAfter(list, after);
    // Later pages use the time range of the first page, whatever time it is now.
    const to = position === null ? (asked.to ?? now) : Number(position[1]);
    const from = position === null ? (asked.from ?? to - DAY_MS) : Number(position[0]);
    checkSpan(from, to, { max: MAX_DAYS, widthMs: DAY_MS, what: "days" });
    const width = pickWidth(to - from);
    const span = { fromMs: bucketStart(from, width), toMs: bucketEnd(to - 1, width) };
    const rows = await readRules(db, {
      zoneIds: visibleZones(caller, zone),
      width,
      ...span,
      sort,
      after: toAfter(position),
      limit: limit + 1,
    });
    const sign = (row: RuleRow) => {
      const value = sort === "rule" ? null : row[sort];
      return cursors.sign(list, [from, to, value, row.zoneId, row.ruleId]);
    };
    const trends =
      points === undefined ? null : await readRuleSparklines(db, rows, { width, ...span, points });
    const toItem = (row: RuleRow) => toRule(row, trends?.get(keyOf(row)) ?? null);
    return { ...toPage(rows, limit, toItem, sign), from: toIso(span.fromMs), to: toIso(span.toMs) };
  },
});

function toAfter(position: readonly (string | number | null)[] | null) {
  if (position === null) return null;
  const [, , value, zoneId, ruleId] = position;
  return { value: value === null ? null : Number(value), zoneId: Number(zoneId), ruleId: String(ruleId) };
}

/** Returns the coarsest buckets that hardly change the requested range. */
function pickWidth(spanMs: number): BucketWidth {
  if (spanMs <= 6 * HOUR_MS) return 60;
  return spanMs <= 60 * DAY_MS ? 3_600 : 86_400;
}

function toRule({ usual, lastSeen, ...row }: RuleRow, sparkline: number[] | null): z.infer<typeof Rule> {
  return { ...row, title: ruleTitle(row.ruleId), lastSeen: toIso(lastSeen), baseline: usual, sparkline };
}

export const ruleOperations = [listRules, showRuleSeries, replayRule, showRuleFacts];
