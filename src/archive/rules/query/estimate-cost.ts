import type { SearchColumn } from "#model/fields.ts";
import type { TextTest } from "#model/search-condition.ts";
import { asksMethod, type SearchPlan } from "./plan-search.ts";

/**
 * Measured on 880,000 archived events, in microseconds of CPU per event. Reading costs 0.15, each text that is looked for
 * 0.05, reading an address as IPv6 1.4, each network 0.02, and grouping by address or URL up to 1. An event in Postgres costs
 * about seven times as much. The unit of a cost is reading one event in Postgres: about a microsecond.
 */
const ARCHIVED_SHARE = 0.15;
const COST_PER_TEST = 0.3;
/** Tests that cost as much as reading the addresses once, and as grouping by a column of many values. */
const TESTS_PER_IPV6 = 30;
const TESTS_PER_MANY_GROUPS = 10;
/** Equal texts are looked up in a hash table. */
const EQUALS_PER_TEST = 50;
const MANY_VALUES = new Set(["ip", "url", "ua", "ja4", "path"]);
/** Tests that cost as much as finding a part of the URL, which DuckDB (1.9 and 3.7 microseconds) does for every test anew. */
const PART_TESTS = { postgres: { path: 1, host: 1 }, files: { path: 40, host: 80 } };
/** Reading a record takes about as long as reading this many events. */
const RECORD_EVENTS = 10;
/** Maximum number of events whose records one search reads: some seconds of work. */
export const MAX_METHOD_EVENTS = 10_000;

type CostedPlan = Pick<SearchPlan, "clauses" | "groupBy" | "methodClauses">;
type Store = keyof typeof PART_TESTS;

/** Returns whether an answer reads only its page and counts that are at hand, however many events there are. */
export function readsPageOnly(plan: CostedPlan): boolean {
  return plan.groupBy.length === 0 && plan.clauses.length === 0 && !asksMethod(plan);
}

/**
 * Returns roughly what an answer costs, as a number of events to read in Postgres. The cost decides whether and where the
 * search waits, before anything runs. `events` are those in the window, `archivedEvents` those of them in files.
 */
export function estimateCost(
  plan: CostedPlan & Pick<SearchPlan, "pageSize">,
  { events, archivedEvents }: { events: number; archivedEvents: number },
): number {
  if (readsPageOnly(plan)) return Math.min(events, 2 * plan.pageSize);
  const archived = Math.min(events, archivedEvents);
  const costOf = (store: Store) => 1 + COST_PER_TEST * countCost(plan, store);
  const records = asksMethod(plan) ? RECORD_EVENTS * Math.min(events, MAX_METHOD_EVENTS) : 0;
  return (events - archived) * costOf("postgres") + archived * ARCHIVED_SHARE * costOf("files") + records;
}

function countCost({ clauses, groupBy }: CostedPlan, store: Store): number {
  const sum = (costs: readonly number[]) => costs.reduce((total, cost) => total + cost, 0);
  const partOf = (name: string) => (name === "path" || name === "host" ? PART_TESTS[store][name] : 0);
  const groups = groupBy.some((name) => MANY_VALUES.has(name)) ? TESTS_PER_MANY_GROUPS : 0;
  const costOf = (column: SearchColumn, test: TextTest) =>
    toTestCount(test) + partOf(column) * (test.kind === "likeAny" ? test.likes.length : 1);
  const tested = clauses.flatMap(({ columns, tests }) =>
    columns.flatMap((column) => tests.map((test) => costOf(column, test))),
  );
  return groups + sum(groupBy.map(partOf)) + sum(tested);
}

function toTestCount(test: TextTest): number {
  switch (test.kind) {
    case "anything":
      return 0;
    case "equals":
      return test.texts.length / EQUALS_PER_TEST;
    case "within":
    case "withinAny":
      return (
        test.networks.length + (test.networks.some((network) => network.includes(":")) ? TESTS_PER_IPV6 : 0)
      );
    case "like":
      return 1;
    case "likeAny":
      return test.likes.length;
    default:
      return test satisfies never;
  }
}
