import type { SearchPlan } from "./plan-search.ts";

/** What an index of closed days can look for: a shorter run of characters is in too many texts. */
const INDEXED_CHARS = 3;
/** Share of the events that a look by index reads, so to speak: one in so many, and the page. */
const INDEXED_SHARE = 0.01;
/** What is noted of an event is read in so much of the time that the event takes. */
const CODED_SHARE = 0.1;

/** Whether an answer reads its page and counts that were made in advance, however many events there are. */
export function readsPageOnly({ clauses, groupBy }: Pick<SearchPlan, "clauses" | "groupBy">): boolean {
  return groupBy.length === 0 && clauses.length === 0;
}

/**
 * How many events an answer has to read, roughly: what a cap compares before anything runs. `events` are those in the
 * window, `openEvents` those of them in days that are not closed, where neither indexes nor counts help.
 */
export function estimateCost(
  plan: Pick<SearchPlan, "clauses" | "groupBy" | "isCountable" | "isCoded" | "page" | "pageSize">,
  { events, openEvents }: { events: number; openEvents: number },
): number {
  if (readsPageOnly(plan)) return Math.min(events, 2 * plan.pageSize);
  if (plan.isCountable) return openEvents + (events - openEvents) * INDEXED_SHARE;
  if (plan.isCoded) return openEvents + (events - openEvents) * CODED_SHARE;
  const isIndexed = plan.clauses.some(({ columns, tests }) =>
    columns.every((column) => tests.every((test) => isIndexedTest(column, test))),
  );
  return openEvents + (events - openEvents) * (isIndexed ? INDEXED_SHARE : 1);
}

type Test = SearchPlan["clauses"][number]["tests"][number];

function isIndexedTest(column: string, test: Test): boolean {
  switch (test.kind) {
    case "anything":
      return false;
    case "equals":
      return column === "ip" || column === "ja4" || column === "ruleId";
    case "within":
      return test.networks.every((network) => Number(network.split("/")[1]) >= 8);
    case "like":
      return (
        ["ip", "ruleId", "url", "ua", "message"].includes(column) &&
        test.asciiPattern.split("%").some((run) => run.length >= INDEXED_CHARS)
      );
    default:
      return test satisfies never;
  }
}
