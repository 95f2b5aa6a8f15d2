/** Plans that people save, compare and follow. */
import { z } from "zod";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import { maskText } from "#archive/rules/mask.ts";
import {
  deleteReviewPlan,
  insertReviewPlan,
  listReviewPlans,
  type ReviewPlanRow,
} from "#db/detection/exclusions.ts";
import { formatWhole, many, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { countChoice, estimateVisitors, findDrift, type ReviewChoice, sayRule } from "#model/review.ts";
import {
  IsoTime,
  lineOf,
  Name,
  notFound,
  RowId,
  Text,
  toIsoOrNull,
  visibleZones,
  ZoneId,
  ZoneNumber,
} from "#operations/fields.ts";
import { defineChange, defineQuery, type QueryContext } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { OWN_CHOICE, readPlan } from "./open-review.ts";
import { Days, Exclusion, planZone, sampleRule, Totals } from "./plan-zone.ts";

const PATH = "/api/v1/review/plans";
const TAG = "Trends";
const MOST_PLANS = 100;

const count = z.number().int();
const id = RowId.describe("The number of the saved plan.");

const Saved = z
  .object({
    id: count,
    zone: count,
    name: Text,
    note: Text,
    createdBy: Text,
    createdAt: IsoTime,
    learned: Days,
    judged: Days,
    block: z.array(Name),
    log: z.array(Name),
    exclusions: z.array(Exclusion),
    promised: z
      .array(z.object({ rule: Name, visitors: count, worst: count }))
      .describe(
        "Requests of recognised visitors on the judged days that each rule was to stop, and on the worst day.",
      ),
    followedSince: IsoTime.nullable().describe(
      "Since when every rule that was seen and is to block does. Null: the plan is not followed, or a newer one is.",
    ),
    drift: z
      .array(z.object({ rule: Name, blocks: z.boolean(), since: count.describe("Epoch ms.") }))
      .describe("Rules that did as planned and no longer do."),
  })
  .meta({ id: "SavedReviewPlan" });

const list = defineQuery({
  name: "review.list",
  summary: "List saved plans, newest first",
  description: "All of them are on one page: a zone has at most 100.",
  http: ["GET", PATH],
  tag: TAG,
  scope: "read",
  input: z.strictObject({ zone: ZoneId.optional().describe("Default: every zone.") }),
  output: z.object({ items: z.array(Saved), next: z.null() }),
  command: {
    examples: ["review list", "review list --zone 101 --json"],
    help: "DRIFT: rules that did as planned and no longer do.",
    limit: null,
    columns: [
      { head: "PLAN", get: (one) => `#${one.id}` },
      { head: "ZONE", get: ({ zone }) => String(zone) },
      { head: "NAME", get: ({ name }) => toLine(name, 80) },
      { head: "SAVED (UTC)", get: ({ createdAt }) => showTime(createdAt) },
      { head: "BLOCKS", get: ({ block }) => String(block.length) },
      {
        head: "FOLLOWED",
        get: ({ followedSince }) => (followedSince === null ? "-" : showTime(followedSince)),
      },
      { head: "DRIFT", get: ({ drift }) => drift.map(({ rule }) => toLine(rule, 60)).join(", ") || "-" },
      { head: "BY", get: ({ createdBy }) => toLine(createdBy, 60) },
      { head: "NOTE", get: ({ note }) => toLine(note, 200) },
    ],
    empty: "No saved plans.",
  },
  run: async ({ db, caller }, { zone }) => ({
    items: (await listReviewPlans(db, visibleZones(caller, zone))).map(toSaved),
    next: null,
  }),
});

const save = defineChange({
  name: "review.save",
  summary: "Save a plan under a name",
  description:
    "The plan of now is saved with the rules and exclusions that the request changes, and with what it promises. Nothing is applied. While the zone follows the plan, visitors that it blocks beyond its promise raise an alert.",
  http: ["POST", PATH],
  tag: TAG,
  scope: "act",
  heavy: "read",
  isLong: true,
  refuses: [409, 422, 503],
  input: z.strictObject({
    zone: ZoneNumber,
    name: lineOf(80),
    note: lineOf(500).optional(),
    ...OWN_CHOICE,
  }),
  output: Saved,
  example: { zone: 101, name: "First switch", note: "Agreed with the shop's team" },
  created: () => PATH,
  command: {
    examples: ['review save --zone 101 --name "First switch" --log 942100'],
    help: "Nothing is applied. Longwatch watches the newest saved plan that the zone follows.",
    say: ({ id: number, block }) => `plan #${number} is saved: ${many(block.length, "rule")} to block.\n`,
  },
  run: async (changing, { zone, name, note = "", block = [], log = [], exclude = [] }) => {
    const { tx, caller, now } = changing;
    visibleZones(caller, zone);
    const found = await readPlan(changing, zone, { block, log, exclude });
    const { table, planned, choice, days, learned, judged } = found;
    const logged = planned.rules.flatMap(({ rule, plan }) =>
      plan === "unplanned" || choice.block.includes(rule) ? [] : [rule],
    );
    const promised = estimateVisitors(table, choice, days.judge);
    const plan = { ...choice, log: logged, learned, judged, promised };
    const added = { zoneId: zone, name, note, createdBy: caller.name, createdAt: new Date(now), plan };
    const row = await insertReviewPlan(tx, added, MOST_PLANS);
    if (row === null)
      throw new Refusal(409, {
        slug: "too-many-plans",
        detail: `Zone ${zone} already has ${MOST_PLANS} saved plans. Delete one first.`,
      });
    return { output: toSaved(row), audit: { action: "review-plan.saved", ...toEntry(row) } };
  },
});

const Side = z.object({
  plan: count.nullable().describe("Null: the plan of now."),
  name: Text,
  blocks: count.describe("Rules that block."),
  totals: Totals.describe("What it would have stopped in the last 7 days."),
});

const compare = defineQuery({
  name: "review.compare",
  summary: "Compare a saved plan with another one, or with the plan of now",
  description:
    "Both are counted over the requests of the last seven days. The items are the rules that differ.",
  http: ["GET", `${PATH}/:id/compare`],
  tag: TAG,
  scope: "read",
  heavy: "read",
  refuses: [422, 503],
  input: z.strictObject({
    id,
    with: RowId.optional().describe("The number of another plan of the zone. Default: the plan of now."),
  }),
  output: z.object({
    zone: count,
    first: Side,
    second: Side,
    items: z.array(z.object({ rule: Name, title: Name.nullable(), first: Text, second: Text })),
    next: z.null(),
  }),
  command: {
    examples: ["review compare 3", "review compare 3 --with 5"],
    limit: null,
    columns: [
      { head: "RULE", get: ({ rule }) => toLine(rule, 60) },
      { head: "FIRST", get: ({ first }) => toLine(first, 60) },
      { head: "SECOND", get: ({ second }) => toLine(second, 60) },
    ],
    empty: "Both do the same with every rule.",
    say: ({ first, second }) => [first, second].map(describeSide).join(""),
  },
  run: async (asked, { id: of, with: other }) => {
    const saved = await findPlan(asked, of);
    const second = other === undefined ? null : await findPlan(asked, other);
    if (second !== null && second.zoneId !== saved.zoneId)
      throw new Refusal(422, {
        slug: "other-zone",
        mistakes: [{ field: "with", value: String(other), rule: `must be a plan of zone ${saved.zoneId}` }],
      });
    const { table, choice, days } = await readPlan(asked, saved.zoneId, { block: [], log: [], exclude: [] });
    const toSide = (row: ReviewPlanRow | null) => {
      const { classes, worstDay } = countChoice(table, row?.plan ?? choice, days.judge);
      const { id: plan = null, name = "Plan of now" } = row ?? {};
      return { plan, name, blocks: (row?.plan ?? choice).block.length, totals: { ...classes, worstDay } };
    };
    const [one, two]: [ReviewChoice, ReviewChoice] = [saved.plan, second?.plan ?? choice];
    const items = [...new Set([...one.block, ...two.block])].sort().flatMap((rule) => {
      const does = { first: sayRule(one, rule), second: sayRule(two, rule) };
      return does.first === does.second ? [] : [{ rule, title: ruleTitle(rule), ...does }];
    });
    return { zone: saved.zoneId, first: toSide(saved), second: toSide(second), items, next: null };
  },
});

function describeSide({ name, blocks, totals }: z.output<typeof Side>): string {
  const { hostile, visitor, unknown, worstDay } = totals;
  return `${toLine(name, 80)}: ${many(blocks, "rule")} to block; stops ${formatWhole(hostile.stops)} of ${many(hostile.all, "hostile request")}, ${formatWhole(visitor.stops)} of visitors and ${formatWhole(unknown.stops)} of unknown senders, at most ${formatWhole(worstDay)} on a day\n`;
}

const remove = defineChange({
  name: "review.delete",
  summary: "Delete a saved plan",
  http: ["DELETE", `${PATH}/:id`],
  tag: TAG,
  scope: "act",
  input: z.strictObject({ id }),
  output: z.object({ id: count, result: z.literal("deleted") }),
  command: {
    examples: ["review delete 3"],
    help: "The alerts about its rules are resolved.",
    say: (output) => `plan #${output.id} is deleted.\n`,
  },
  run: async ({ tx: db, caller, now }, { id: of }) => {
    const row = await findPlan({ db, caller }, of);
    await deleteReviewPlan(db, row, now);
    const audit = { action: "review-plan.deleted", ...toEntry(row) };
    return { output: { id: of, result: "deleted" as const }, audit };
  },
});

export const reviewOperations = [planZone, sampleRule, list, save, compare, remove];

/** @throws {Refusal} 404 */
async function findPlan({ db, caller }: Pick<QueryContext, "db" | "caller">, wanted: number) {
  const [row] = await listReviewPlans(db, caller.zoneIds, { id: wanted });
  if (row === undefined) throw notFound(`saved plan ${wanted}`);
  return row;
}

function toSaved({ id: number, zoneId: zone, name, note, createdBy, createdAt, plan, watch }: ReviewPlanRow) {
  return {
    id: number,
    zone,
    name,
    note,
    createdBy,
    ...plan,
    block: [...plan.block],
    log: [...plan.log],
    exclusions: [...plan.exclusions],
    promised: [...plan.promised],
    createdAt: createdAt.toISOString(),
    followedSince: toIsoOrNull(watch?.followedSince ?? null),
    drift: findDrift(plan, watch).map(({ rule, blocks, since }) => ({ rule, blocks, since })),
  };
}

function toEntry({ id: of, zoneId, name, plan: { block } }: ReviewPlanRow) {
  return { subject: `review plan ${of}`, details: { zoneId, name: maskText(name), blocks: block.length } };
}
