/** Custom conditions: lists, tests, adds and removes them. */
import { z } from "zod";
import { maskText } from "#archive/rules/mask.ts";
import { readCondition } from "#archive/rules/query/custom-conditions.ts";
import { WrittenFilters, WrittenQuery } from "#archive/rules/query/read-search.ts";
import {
  deleteCustomCondition,
  insertCustomCondition,
  listCustomConditions,
  listHolding,
  lockCustomConditions,
} from "#db/detection/custom-conditions.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { formatWhole } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import {
  CONDITION_NAME,
  CONDITION_NAME_RULE,
  type CustomCondition,
  conditionRule,
  describeLimit,
  describeQuery,
  LONGEST_WITHIN_MINUTES,
  MOST_CONDITIONS,
} from "#model/custom-condition.ts";
import { FIELD_NAMES } from "#model/fields.ts";
import { SPIKE_SEVERITIES } from "#model/kinds.ts";
import { type Caller, maySeeAll, maySeeSome, pickSeen } from "#operations/caller.ts";
import { Name, notFound, pageOf, requireEveryZone, Text, Time, ZoneIds } from "#operations/fields.ts";
import { type Column, defineChange, defineQuery, type QueryContext } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { readZones } from "#operations/require-known.ts";
import { BackTest, backTest, refuse, sayBackTest } from "./test-condition.ts";

const PATH = "/api/v1/conditions";
const TAG = "Alerts";
const count = z.number().int();

const Item = z
  .object({
    name: Name,
    isOfFile: z.boolean().describe("True: it is in the configuration file, and changed there."),
    filters: z.array(Text),
    query: Text,
    zoneIds: z.array(count).nullable().describe("Null: every zone. Each is counted by itself."),
    moreThan: count.nullable().describe("Null: the condition holds while no event comes."),
    distinct: z.enum(FIELD_NAMES).nullable(),
    withinMinutes: count,
    severity: z.enum(SPIKE_SEVERITIES),
    holdsIn: z.array(count).describe("Zones in which it holds now."),
    createdBy: Text.nullable(),
  })
  .meta({ id: "CustomCondition" });
type Item = z.infer<typeof Item>;

const COLUMNS: readonly Column<Item>[] = [
  { head: "CONDITION", get: ({ name }) => name },
  { head: "HOLDS WITH", get: describeLimit },
  { head: "EVENTS", get: (one) => toLine(describeQuery(one), 200) },
  { head: "ZONES", get: ({ zoneIds }) => zoneIds?.join() ?? "all" },
  { head: "SEVERITY", get: ({ severity }) => severity },
  { head: "HOLDS IN", get: ({ holdsIn }) => holdsIn.join() || "-" },
  { head: "BY", get: ({ createdBy }) => (createdBy === null ? "file" : toLine(createdBy, 60)) },
];

const list = defineQuery({
  name: "conditions.list",
  tab: "Custom conditions",
  summary: "List custom conditions: searches that raise an alert",
  description: "Those of the configuration file come first. All of them are on one page.",
  http: ["GET", PATH],
  tag: TAG,
  scope: "read",
  input: z.strictObject({}),
  output: pageOf(Item),
  command: {
    examples: ["conditions list", "conditions list --json"],
    help: "Conditions of the configuration file (conditions) are changed there.",
    columns: COLUMNS,
    empty: "No custom conditions.",
  },
  run: async ({ caller, db, service }) => {
    const fromFile = service.alerting().conditions.map((condition) => ({ condition, createdBy: null }));
    const holding = Map.groupBy(await listHolding(db), ({ ruleId }) => ruleId);
    const items = [...fromFile, ...(await listCustomConditions(db))].flatMap((one) => {
      const zones = holding.get(conditionRule(one.condition))?.map(({ zoneId }) => zoneId) ?? [];
      return toItem(one, caller, zones);
    });
    return { items, next: null };
  },
});

const WRITTEN = {
  filter: WrittenFilters.optional().describe(
    "field:op:value[,value], as search takes it; not- before op excludes. All filters must match.",
  ),
  query: WrittenQuery.optional().describe("Text in address, rule, URL, user agent or message."),
  zone: ZoneIds.default("all").describe(
    "Id of the shield zone, several with commas, or all. Each zone is counted by itself: counts are not added up.",
  ),
  moreThan: z
    .int()
    .min(0)
    .optional()
    .describe("The count that is not yet an alert. Default: 0, so any event is."),
  distinct: z
    .string()
    .max(20)
    .optional()
    .describe("The field whose different values are counted, instead of events."),
  absent: z.boolean().optional().describe("The alert is that no event came."),
  withinMinutes: z
    .int()
    .min(1)
    .max(LONGEST_WITHIN_MINUTES)
    .default(60)
    .meta({ flag: "within", unit: "minutes" })
    .describe("The window, from 1m to 24h. Default: 1h."),
  severity: z.enum(SPIKE_SEVERITIES).default("warning"),
  since: Time.optional().describe("Start of the back-test. Default: 30 days ago."),
};

const EXAMPLE = { filter: ["path:wildcard:/admin*", "country:not-eq:NL"] };

const test = defineQuery({
  name: "conditions.test",
  summary: "Show when a custom condition would have fired",
  description: "Runs the search over the events that are kept. Stores nothing.",
  http: ["POST", `${PATH}/test`],
  tag: TAG,
  scope: "read",
  heavy: "read",
  refuses: [422, 503],
  input: z.strictObject(WRITTEN),
  output: BackTest,
  example: EXAMPLE,
  command: {
    examples: [
      "conditions test --filter 'path:wildcard:/admin*' --filter country:not-eq:NL",
      "conditions test --absent --zone 101 --within 6h --since -7d",
    ],
    say: sayBackTest,
  },
  run: async (asked, written) => {
    const condition = await read(asked, { ...written, name: "test" });
    return backTest(asked, condition, written);
  },
});

const add = defineChange({
  name: "conditions.add",
  summary: "Add a custom condition, after a back-test",
  description:
    "From now on the condition raises an alert like any other while it holds. Each zone is counted by itself. At most 1,000 conditions hold, those of the configuration file among them.",
  http: ["POST", PATH],
  tag: TAG,
  scope: "act",
  heavy: "read",
  isLong: true,
  refuses: [409, 422, 503],
  query: ["dryRun"],
  input: z.strictObject({
    name: z
      .string()
      .regex(CONDITION_NAME, CONDITION_NAME_RULE)
      .meta({ operand: true })
      .describe("Its name in alerts."),
    ...WRITTEN,
    dryRun: z
      .enum(["true", "false"])
      .default("false")
      .meta({ isSwitch: true })
      .describe("Store nothing, and show when the condition would have fired."),
  }),
  output: z.object({ condition: Item, isAdded: z.boolean(), backTest: BackTest }),
  example: { name: "admin-from-abroad", ...EXAMPLE },
  created: ({ isAdded }) => (isAdded ? PATH : null),
  command: {
    examples: [
      "conditions add admin-from-abroad --filter 'path:wildcard:/admin*' --filter country:not-eq:NL",
      "conditions add rule-4711 --filter rule:eq:4711 --filter action:eq:log --more-than 50 --within 1h",
      "conditions add login-spray --filter path:eq:/login --distinct address --more-than 200 --within 15m",
      "conditions add shop-is-silent --absent --zone 101 --within 6h",
    ],
    help: "Each zone is counted by itself, also of several zones. A late event counts in the minute in which it happened. Its window raises an alert if it ended within a day.",
    say: ({ condition, isAdded, backTest: tested }) =>
      `condition ${condition.name} ${isAdded ? "is added" : "is not added (dry run)"}: ${describeLimit(condition)}, of ${toLine(describeQuery(condition), 500)}.\n${sayBackTest(tested)}`,
  },
  run: async (changing, { dryRun, ...written }) => {
    const { caller, service, database } = changing;
    const condition = await read(changing, written);
    const { name } = condition;
    const fromFile = service.alerting().conditions;
    refuseTaken(fromFile, name);
    const tested = await backTest(changing, condition, written);
    const isAdded = dryRun === "false";
    if (isAdded)
      await inTransaction(database, async ({ tx }) => {
        await lockCustomConditions(tx);
        const all = fromFile.length + (await listCustomConditions(tx)).length;
        if (all >= MOST_CONDITIONS)
          throw refuse({
            field: "name",
            value: name,
            rule: `must be one of at most ${formatWhole(MOST_CONDITIONS)} conditions; there are ${formatWhole(all)}. Remove one first`,
          });
        const row = await insertCustomCondition(tx, condition, caller.name);
        if (row === null)
          throw new Refusal(409, {
            detail: `There is a condition ${name}. Remove it first, or choose another name.`,
          });
      });
    if (isAdded) changing.afterCommit(() => changing.enqueue("judge-conditions", {}));
    const [item] = toItem({ condition, createdBy: caller.name }, caller, []);
    const audit = { action: "condition.added", ...toEntry(condition) };
    return { output: { condition: item as Item, isAdded, backTest: tested }, audit: isAdded ? audit : null };
  },
});

const remove = defineChange({
  name: "conditions.remove",
  summary: "Remove a custom condition",
  http: ["DELETE", `${PATH}/:name`],
  tag: TAG,
  scope: "act",
  refuses: [409],
  input: z.strictObject({ name: z.string().max(63).describe("The name of the condition.") }),
  output: z.object({ name: Name, result: z.literal("removed") }),
  command: {
    examples: ["conditions remove admin-from-abroad"],
    help: "Its open alerts resolve.",
    say: ({ name }) => `condition ${toLine(name, 63)} is removed. Its open alerts resolve within a minute.\n`,
  },
  run: async ({ caller, tx, service, enqueue, afterCommit }, { name }) => {
    const row = (await listCustomConditions(tx)).find((one) => one.name === name);
    if (row === undefined) refuseTaken(service.alerting().conditions, name);
    if (row === undefined || !maySeeSome(caller, row.condition.zoneIds)) throw notFound(`condition ${name}`);
    refuseForeign(caller, row.condition);
    await deleteCustomCondition(tx, name);
    afterCommit(() => enqueue("judge-conditions", {}));
    return {
      output: { name, result: "removed" as const },
      audit: { action: "condition.removed", ...toEntry(row.condition) },
    };
  },
});

export const conditionOperations = [list, test, add, remove];

type Written = Omit<z.output<typeof add.input>, "dryRun">;

/** @throws {Refusal} 422 with everything that is wrong, 403 for zones of others */
async function read(asked: QueryContext, written: Written): Promise<CustomCondition> {
  const { zone, filter = [], query, moreThan, distinct, absent, withinMinutes, ...rest } = written;
  if (zone === "all") requireEveryZone(asked.caller);
  const zoneIds = zone === "all" ? null : await readZones(asked, zone);
  const counting = { query, moreThan, distinct, absent, withinMs: withinMinutes * MINUTE_MS };
  const found = readCondition({ ...rest, zoneIds, filters: filter, ...counting });
  if ("mistakes" in found) throw refuse(...found.mistakes);
  return found.condition;
}

interface Found {
  readonly condition: CustomCondition;
  readonly createdBy: string | null;
}

function toItem({ condition, createdBy }: Found, caller: Caller, holdsIn: readonly number[]): Item[] {
  if (!maySeeSome(caller, condition.zoneIds)) return [];
  return [
    {
      ...condition,
      filters: [...condition.filters],
      zoneIds: condition.zoneIds === null ? null : pickSeen(caller, condition.zoneIds),
      holdsIn: pickSeen(caller, holdsIn),
      isOfFile: createdBy === null,
      createdBy,
    },
  ];
}

/** @throws {Refusal} 403 unless the key is for all zones of the condition */
function refuseForeign(caller: Caller, { zoneIds }: CustomCondition): void {
  if (!maySeeAll(caller, zoneIds)) requireEveryZone(caller);
}

/** @throws {Refusal} 409 for the name of a condition of the file */
function refuseTaken(fromFile: readonly CustomCondition[], name: string): void {
  if (fromFile.some((one) => one.name === name))
    throw new Refusal(409, {
      detail: `The condition ${name} is in the configuration file. Change or remove it there.`,
    });
}

/** Texts are masked, because an erasure does not change audit entries. */
function toEntry(condition: CustomCondition) {
  const { name, zoneIds, severity } = condition;
  const details = { events: maskText(describeQuery(condition)), limit: describeLimit(condition), severity };
  return { subject: `condition ${name}`, details: { ...details, zones: zoneIds?.join() ?? "all" } };
}
