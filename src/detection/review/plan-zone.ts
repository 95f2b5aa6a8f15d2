/** The plan of a zone: which rules should block, proven on days that it was not made from. */
import { z } from "zod";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import { maskText } from "#archive/rules/mask.ts";
import { countRequests, readCounts, type SeenRule } from "#archive/rules/sql/count-requests.ts";
import { wrapText } from "#delivery/rules/message/text-width.ts";
import { refuseRule } from "#detection/rules/exclusion/propose-exclusion.ts";
import { countRules, planReview } from "#detection/rules/review/plan-review.ts";
import { templateOf } from "#detection/rules/verdict/path-template.ts";
import { formatWhole } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import { REQUEST_CLASSES, REVIEW_FORMS, REVIEW_PLANS, type RequestClass, RULE_MODES } from "#model/kinds.ts";
import { countChoice, countMargins, noRequests, type ReviewChoice, summarizeReview } from "#model/review.ts";
import { writeReview } from "#model/review-forms.ts";
import { Name, Text, ZoneId } from "#operations/fields.ts";
import type { Cell, DrawTable } from "#operations/operation.ts";
import { defineQuery } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { nameKnown } from "#operations/require-known.ts";
import { ExclusionList, openReview, PLANNED_DAYS, RuleList } from "./open-review.ts";

const count = z.number().int();
const Share = z.object({
  all: count,
  stops: count.describe("What the choice would have stopped."),
  stopped: count.describe("What was stopped."),
});

const Days = z.object({
  from: Name.describe("UTC day."),
  to: Name.describe("UTC day, included."),
  days: count.describe("Days with requests."),
});

function ofClasses<Schema extends z.ZodType>(schema: Schema): Record<RequestClass, Schema> {
  return Object.fromEntries(REQUEST_CLASSES.map((name) => [name, schema])) as Record<RequestClass, Schema>;
}

const Exclusion = z.object({ rule: Name, path: Text });

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
    totals: z.object({
      ...ofClasses(Share),
      worstDay: count,
    }),
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
    block: RuleList.optional().describe("Rules that block whatever the plan says, separated by commas."),
    log: RuleList.optional().describe("Rules that log whatever the plan says."),
    exclude: ExclusionList.optional().describe(
      "More exclusions: rules with paths, such as 942100@/checkout.",
    ),
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
    help: "Nothing is applied. With --form, only that text is printed.",
    say: (output, { table, input }) =>
      input.form === undefined ? describePlan(output, table) : (output.form ?? ""),
  },
  run: async (asked, { zone, block = [], log = [], exclude = [], form, table: wantsTable }) => {
    const { days, read } = await openReview(asked, zone);
    const { rows, olderDays } = await read((_deps, readRows) =>
      readRows((classified) => countRequests(classified, days.judge.from * DAY_MS)),
    );
    const { table, seen } = readCounts(rows, templateOf);
    const planned = planReview(table, seen, days.learn);
    const refused = seen.filter(
      ({ rule, feature, isCounted }) => refuseRule(rule, feature) !== null || !isCounted,
    );
    checkRules("block", block, seen, refused);
    checkRules("log", log, seen, []);
    checkRules(
      "exclude",
      exclude.map(({ rule }) => rule),
      seen,
      refused,
    );
    const choice = mergeChoice(planned.choice, { block, log, exclude });
    const totals = countChoice(table, choice, days.judge);
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
    const dayOf = (day: number) => toDay(day * DAY_MS);
    const plannable = rules.filter(({ plan }) => plan !== "unplanned");
    const text = form === undefined ? null : writeReview(form, { zone, ...choice, rules: plannable });
    return {
      zone,
      learned: { from: dayOf(days.learn.from), to: dayOf(days.learn.to - 1), days: planned.learnedDays },
      judged: { from: dayOf(days.judge.from), to: dayOf(days.judge.to - 1), days: totals.days },
      olderDays: [...olderDays],
      totals: { ...totals.classes, worstDay: totals.worstDay },
      rules,
      choice: { block: [...choice.block], exclusions: [...choice.exclusions] },
      summary: summarizeReview({ zone, totals, olderDays, learnedDays: planned.learnedDays, rules, choice }),
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

/** @throws {Refusal} 422 for a rule that was not seen, or that cannot block by itself */
function checkRules(
  field: string,
  rules: readonly string[],
  seen: readonly SeenRule[],
  refused: readonly SeenRule[],
): void {
  const mistakes = rules.flatMap((rule) => {
    const value = JSON.stringify(rule);
    if (!seen.some((one) => one.rule === rule))
      return [
        {
          field,
          value,
          rule: `must be a rule with events in the last ${PLANNED_DAYS} days (${nameKnown(seen.map((one) => one.rule))})`,
        },
      ];
    const known = refused.find((one) => one.rule === rule);
    return known === undefined
      ? []
      : [
          {
            field,
            value,
            rule: `cannot be planned: ${refuseRule(rule, known.feature) ?? "it is too rare to be counted beside the others"}`,
          },
        ];
  });
  if (mistakes.length > 0) throw new Refusal(422, { slug: "invalid-review", mistakes });
}

function mergeChoice(
  { block: planned, exclusions }: ReviewChoice,
  {
    block,
    log,
    exclude,
  }: {
    readonly block: readonly string[];
    readonly log: readonly string[];
    readonly exclude: ReviewChoice["exclusions"];
  },
): ReviewChoice {
  const blocking = [...new Set([...planned, ...block])].filter((rule) => !log.includes(rule));
  // A rule that is named to block has the exclusions of the request only.
  const kept = exclusions.filter(({ rule }) => blocking.includes(rule) && !block.includes(rule));
  return { block: blocking, exclusions: [...kept, ...exclude] };
}

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
  const notes = rules.flatMap(({ rule, exclusions, why }) => [
    ...exclusions.map(
      (path) => `${toLine(rule, 12)} must not block on ${toLine(path, 60)}: see \`exclusion try\``,
    ),
    ...(why === "" || exclusions.length > 0 ? [] : [`${toLine(rule, 12)}: ${toLine(why, 160)}`]),
  ]);
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
