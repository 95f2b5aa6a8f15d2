/** The plan of a zone: which rules should block, proven on days that it was not made from, and the requests behind its figures. */
import { z } from "zod";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import { maskText } from "#archive/rules/mask.ts";
import { type SampledRequest, sampleRequests } from "#archive/rules/sql/count-requests.ts";
import { readRecords } from "#archive/search/read-records.ts";
import { wrapText } from "#delivery/rules/message/text-width.ts";
import { toUrlPattern } from "#detection/rules/exclusion/write-forms.ts";
import { countRules } from "#detection/rules/review/plan-review.ts";
import { cutSample } from "#detection/rules/verdict/word-verdict.ts";
import { formatWhole, many } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import {
  REQUEST_CLASSES,
  REVIEW_FORMS,
  REVIEW_PLANS,
  REVIEW_SAMPLES,
  type RequestClass,
  RULE_MODES,
} from "#model/kinds.ts";
import { readRequest } from "#model/request-facts.ts";
import { countMargins, noRequests, summarizeReview } from "#model/review.ts";
import { writeReview } from "#model/review-forms.ts";
import { IsoTime, Name, RuleId, Text, toIso, ZoneId } from "#operations/fields.ts";
import type { Cell, DrawTable } from "#operations/operation.ts";
import { defineQuery } from "#operations/operation.ts";
import { ExclusionList, OWN_CHOICE, openReview, RuleList, readPlan } from "./open-review.ts";

const count = z.number().int();
const Share = z.object({
  all: count,
  stops: count.describe("What the choice would have stopped."),
  stopped: count.describe("What was stopped."),
});

export const Days = z.object({
  from: Name.describe("UTC day."),
  to: Name.describe("UTC day, included."),
  days: count.describe("Days with requests."),
});

function ofClasses<Schema extends z.ZodType>(schema: Schema): Record<RequestClass, Schema> {
  return Object.fromEntries(REQUEST_CLASSES.map((name) => [name, schema])) as Record<RequestClass, Schema>;
}

export const Totals = z.object({ ...ofClasses(Share), worstDay: count });

export const Exclusion = z.object({ rule: Name, path: Text });

const PlannedRule = z.object({
  rule: Name,
  title: Name.nullable(),
  now: z.enum(RULE_MODES).describe("What its events of the last seven days got."),
  perDay: z.number().describe("Its events on a day, on average."),
  addresses: count.describe("Different addresses, about."),
  ...ofClasses(count),
  visitorsMedian: count.describe(
    "Requests of visitors and unknown senders a day that it stops if it blocks and no other blocking rule matches: the median of the last seven days.",
  ),
  visitorsWorst: count.describe("The same on the worst day."),
  attacksThrough: count.describe("Hostile requests of the last seven days that get through if it logs."),
  plan: z.enum(REVIEW_PLANS),
  why: Text,
  exclusions: z.array(Text).describe("Templates of paths on which it must not block."),
  isBlocking: z.boolean().describe("Whether it blocks in the choice of the request."),
});

export const ReviewPlanOutput = z
  .object({
    zone: count,
    summary: Text.describe("The plan in sentences."),
    learned: Days,
    judged: Days,
    olderDays: z
      .array(Name)
      .describe(
        "Days whose files hold no facts of requests: theirs are unknown. `archive rewrite` adds the facts.",
      ),
    totals: Totals,
    rules: z.array(PlannedRule).describe("The rules of the zone, those with the most events first."),
    choice: z.object({ block: z.array(Name), exclusions: z.array(Exclusion) }),
    form: z
      .string()
      .meta({ masked: "text" })
      .nullable()
      .describe("The choice in the form that was asked for. Longwatch applies nothing."),
    table: z
      .object({
        rules: z.array(Name),
        paths: z.array(Text),
        sets: z.array(z.array(count)),
        rows: z
          .array(z.array(count))
          .describe("Day since the epoch, class, 1 if stopped, set of rules, path or -1, requests."),
      })
      .nullable()
      .describe("The counts behind the figures, from which a choice can be counted again."),
  })
  .meta({ id: "ReviewPlan" });
export type ReviewPlanOutput = z.output<typeof ReviewPlanOutput>;

export const planZone = defineQuery({
  name: "review.plan",
  summary: "Plan which rules of a zone should block",
  description:
    "The plan is made from the days 30 to 8 before now; its figures are of the last seven days. Columns of events are read, and no record. Nothing is applied.",
  http: ["GET", "/api/v1/review"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  heavy: "read",
  refuses: [422, 503],
  input: z.strictObject({
    zone: ZoneId,
    ...OWN_CHOICE,
    form: z.enum(REVIEW_FORMS).optional().describe("Adds the choice as a text that a person can apply."),
    table: z.enum(["true", "false"]).default("false").describe("Adds the counts behind the figures."),
  }),
  output: ReviewPlanOutput,
  example: { zone: "101", form: "terraform" },
  command: {
    examples: [
      "review plan --zone 101",
      "review plan --zone 101 --block 942100 --exclude 942100@/checkout",
      "review plan --zone 101 --form terraform > waf.tf",
    ],
    help: "Nothing is applied. With --form, only that text is printed. No document of the platform says that action 0 of the curl form makes a rule block: check the first rule.",
    say: (output, { table, input }) =>
      input.form === undefined ? describePlan(output, table) : (output.form ?? ""),
  },
  run: async (asked, { zone, block = [], log = [], exclude = [], form, table: wantsTable }) => {
    const { days, table, seen, planned, olderDays, choice, totals, learned, judged } = await readPlan(
      asked,
      zone,
      { block, log, exclude },
    );
    const margins = countMargins(table, choice, days.judge);
    const { perRule } = countRules(table, days.judge);
    const span = new Set(table.rows.map(([day]) => day)).size;
    const rules = planned.rules.map((one) => {
      const known = seen.find(({ rule }) => rule === one.rule);
      const margin = margins[table.rules.indexOf(one.rule)];
      return {
        rule: one.rule,
        title: ruleTitle(one.rule),
        now: one.now,
        plan: one.plan,
        why: one.why,
        perDay: Math.round((10 * (known?.events ?? 0)) / Math.max(1, span)) / 10,
        addresses: known?.addresses ?? 0,
        ...(perRule.get(one.rule) ?? noRequests()),
        visitorsMedian: margin?.visitorsMedian ?? 0,
        visitorsWorst: margin?.visitorsWorst ?? 0,
        attacksThrough: margin?.hostile ?? 0,
        exclusions: choice.exclusions.flatMap(({ rule, path }) => (rule === one.rule ? [path] : [])),
        isBlocking: choice.block.includes(one.rule),
      };
    });
    const plannable = rules.filter(({ plan }) => plan !== "unplanned");
    const text = form === undefined ? null : writeReview(form, { zone, ...choice, rules: plannable });
    return {
      zone,
      learned,
      judged,
      olderDays: [...olderDays],
      totals: { ...totals.classes, worstDay: totals.worstDay },
      rules,
      choice: { block: [...choice.block], exclusions: [...choice.exclusions] },
      summary: summarizeReview({ zone, totals, olderDays, learnedDays: learned.days, rules, choice }),
      // A masked form would exclude other paths than the one that was counted.
      form: text !== null && asked.caller.masked && maskText(text) !== text ? null : text,
      table:
        wantsTable === "true"
          ? {
              rules: [...table.rules],
              paths: [...table.paths],
              sets: table.sets.map((set) => [...set]),
              rows: table.rows.map((row) => [...row]),
            }
          : null,
    };
  },
});

type Rule = ReviewPlanOutput["rules"][number];

const PLANS = { log: "log", undecided: "undecided", unplanned: "not planned" } as const;
const MOST_WHY = 8;
const WIDTH = 79;

/** Returns the sentences, a line for each rule, and why rules do not simply block. Fits into 80 columns. */
function describePlan({ summary, learned, judged, rules }: ReviewPlanOutput, table: DrawTable): string {
  const rows = rules.map((rule): Cell[] => [
    toLine(rule.rule, 12),
    rule.now,
    ...[rule.hostile, rule.visitor, rule.unknown].map(formatWhole),
    `${formatWhole(rule.visitorsMedian)}/${formatWhole(rule.visitorsWorst)}`,
    formatWhole(rule.attacksThrough),
    planOf(rule),
  ]);
  const heads = ["RULE", "NOW", "HOSTILE", "VISITORS", "UNKNOWN", "HIT/DAY", "THROUGH", "PLAN"];
  const excluded = rules.flatMap(({ rule, exclusions }) => exclusions.map((path) => ({ rule, path })));
  const notes = [
    ...Array.from(
      Map.groupBy(excluded, ({ path }) => path),
      ([path, of]) =>
        `${of.length === 1 ? toLine(of[0]?.rule ?? "", 12) : many(of.length, "rule")} must not block on ${toLine(path, 60)}: see \`exclusion try\``,
    ),
    ...rules.flatMap(({ rule, exclusions, why }) =>
      why === "" || exclusions.length > 0 ? [] : [`${toLine(rule, 12)}: ${toLine(why, 160)}`],
    ),
  ];
  const more =
    notes.length > MOST_WHY ? [`... and ${notes.length - MOST_WHY} more: --json has all of them`] : [];
  return [
    ...wrapText(toLine(summary, 2_000), WIDTH),
    "",
    ...wrapText(
      `Planned from ${learned.from} to ${learned.to} (${learned.days} days with requests); the figures are of ${judged.from} to ${judged.to}. block*: after an exclusion. HIT/DAY: requests of visitors and unknown senders that only this rule would stop, on the median and the worst day. THROUGH: hostile requests that get through if it logs.`,
      WIDTH,
    ),
    "",
    rules.length === 0 ? "" : table(heads, rows).trimEnd(),
    ...(notes.length === 0
      ? []
      : ["", ...notes.slice(0, MOST_WHY).flatMap((note) => wrapText(note, WIDTH)), ...more]),
    "",
  ].join("\n");
}

function planOf({ plan, isBlocking, exclusions }: Rule): Cell {
  if (isBlocking) return { text: exclusions.length === 0 ? "block" : "block*", style: "green" };
  return plan === "block" || plan === "block-after-exclusion" ? "log (chosen)" : PLANS[plan];
}

const Sample = z.object({
  kind: z
    .enum(REVIEW_SAMPLES)
    .describe("A request that the rule would stop, or one that gets through without it."),
  class: Name,
  at: IsoTime,
  logId: Name,
  ip: z.string().meta({ masked: "address" }),
  method: Name,
  url: Text,
  action: Name,
  parameter: Text.nullable(),
  matched: z.string().nullable().meta({ masked: "nothing" }),
});

export const sampleRule = defineQuery({
  name: "review.samples",
  summary: "Show the visitors that a rule would stop, and the attacks that would get through without it",
  description:
    "The newest requests of the last seven days that no other blocking rule matches, one of each sender, at most ten of each kind. Their records are read. Texts are from requests. Escape them.",
  http: ["GET", "/api/v1/review/samples"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  heavy: "read",
  refuses: [422, 503],
  input: z.strictObject({
    zone: ZoneId,
    rule: RuleId,
    block: RuleList.optional().describe("The rules that block. Default: none but the rule."),
    exclude: ExclusionList.optional().describe(
      "Paths on which rules do not block, such as 942100@/checkout.",
    ),
  }),
  output: z.object({ items: z.array(Sample), next: z.null() }),
  command: {
    examples: ["review samples --zone 101 --rule 942100"],
    limit: null,
    columns: [
      { head: "WHOSE", get: ({ class: of }) => of },
      { head: "TIME (UTC)", get: ({ at }) => at.slice(0, 19).replace("T", " ") },
      { head: "ADDRESS", get: ({ ip }) => toLine(ip, 45) },
      { head: "REQUEST", get: ({ method, url }) => toLine(`${method} ${url}`.trim(), 120) },
      { head: "MATCHED", get: ({ matched }) => toLine(matched ?? "-", 60) },
    ],
    empty: "No visitor would be stopped, and no attack would get through.",
  },
  run: async (asked, { zone, rule, block = [], exclude = [] }) => {
    const { caller, searching } = asked;
    const patterns = exclude.flatMap((one) => (one.rule === rule ? [toUrlPattern(one.path)] : []));
    const others = block.filter((one) => one !== rule);
    const { read, days } = await openReview(asked, zone);
    const samples = await read(async (deps, readRows, stopped) => {
      const { rows } = await readRows((classified) =>
        sampleRequests(classified, { rule, others, patterns, from: days.judge.from * DAY_MS }),
      );
      const found = rows.map((row) => JSON.parse(row) as SampledRequest);
      // A masked key sees no matched text, so no record is read for it.
      const placed = found.map(({ at, logId }) => ({ occurredAt: at, logId, archived: null }));
      const records = caller.masked
        ? []
        : await readRecords({ ...deps, openedBlocks: searching.openedBlocks }, zone, placed, stopped);
      return found.map((one, index) => {
        const record = records[index];
        const {
          method = "",
          parameter = null,
          matched = null,
        } = record === undefined ? {} : readRequest(record, { url: one.url, ua: "", ruleId: rule }, "");
        return {
          kind: one.kind,
          class: one.class,
          ...cutSample({ ...one, ruleId: rule, method, parameter, matched }),
        };
      });
    });
    return { items: samples.map(({ ruleId: _rule, at, ...one }) => ({ ...one, at: toIso(at) })), next: null };
  },
});
