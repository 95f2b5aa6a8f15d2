import type { SearchPlan } from "./plan-search.ts";

/** What an index of closed days can look for: a shorter run of characters is in too many texts. */
const INDEXED_CHARS = 3;
/** Share of the events that a look by index reads, so to speak: one in so many, and the page. */
const INDEXED_SHARE = 0.01;
/** A text of three characters may be rare or in every second event. */
const TEXT_SHARE = 0.1;
/** What is noted of an event is read in so much of the time that the event takes. */
const CODED_SHARE = 0.1;

/** Whether an answer reads its page and counts that were made in advance, however many events there are. */
export function readsPageOnly({ clauses, groupBy }: Pick<SearchPlan, "clauses" | "groupBy">): boolean {
  return groupBy.length === 0 && clauses.length === 0;
}

/**
 * How many events an answer has to read, roughly: what a cap compares before anything runs. `events` are those in the
 * window, `openEvents` those of them in days that are not closed, where neither indexes nor counts help; `most` says of how
 * many events what closed days note of each is read.
 */
export function estimateCost(
  plan: Pick<SearchPlan, "clauses" | "groupBy" | "isCountable" | "isCoded" | "page" | "pageSize">,
  { events, openEvents }: { events: number; openEvents: number },
  most: { readonly looseEvents: number; readonly codedEvents: number },
): number {
  const closedEvents = events - openEvents;
  if (readsPageOnly(plan)) return Math.min(events, 2 * plan.pageSize);
  if (plan.isCountable) return openEvents + closedEvents * INDEXED_SHARE;
  if (plan.isCoded && openEvents <= most.looseEvents && closedEvents <= most.codedEvents)
    return openEvents + closedEvents * CODED_SHARE;
  const shares = plan.clauses.map(({ columns, tests }) =>
    Math.max(INDEXED_SHARE, ...columns.flatMap((column) => tests.map((test) => shareOf(column, test)))),
  );
  return openEvents + closedEvents * Math.min(1, ...shares);
}

type Test = SearchPlan["clauses"][number]["tests"][number];

/** Of the events, the share that is read to find those of closed days that pass. */
function shareOf(column: string, test: Test): number {
  switch (test.kind) {
    case "anything":
      return 1;
    case "equals":
      return ["ip", "ja4", "ruleId"].includes(column) ? INDEXED_SHARE : 1;
    case "within":
      return test.networks.every((network) => Number(network.split("/")[1]) >= 8) ? INDEXED_SHARE : 1;
    case "withinAny":
    case "likeAny":
      return 1;
    case "like":
      return ["ip", "ruleId", "url", "ua", "message"].includes(column) &&
        test.asciiPattern.split("%").some((run) => run.length >= INDEXED_CHARS)
        ? TEXT_SHARE
        : 1;
    default:
      return test satisfies never;
  }
}
