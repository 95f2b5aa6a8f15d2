import type { SearchPlan } from "./plan-search.ts";

/** The shortest run of characters that an index of closed days can find. A shorter one occurs in too many texts. */
const INDEXED_CHARS = 3;
/** Share of the events that an index scan reads, beside the page. */
const INDEXED_SHARE = 0.01;
/** Assumed share of events for a text of three characters, which may be rare or in every second event. */
const TEXT_SHARE = 0.1;
/** Reading the noted values of an event takes this share of the time of reading the event. */
const CODED_SHARE = 0.1;

/**
 * Returns whether an answer reads only its page and counts that were made in advance, however many events there are.
 */
export function readsPageOnly({ clauses, groupBy }: Pick<SearchPlan, "clauses" | "groupBy">): boolean {
  return groupBy.length === 0 && clauses.length === 0;
}

/**
 * Returns roughly how many events an answer has to read, which is compared with a limit before anything runs.
 * `events` are those in the window, `openEvents` those of them in open days, where neither indexes nor counts help.
 * `most` limits for how many events the noted values of closed days are read.
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
  const shares = plan.clauses.map(({ columns, tests, isNegated }) =>
    Math.max(
      isNegated === true ? 1 : INDEXED_SHARE,
      ...columns.flatMap((column) => tests.map((test) => shareOf(column, test))),
    ),
  );
  return openEvents + closedEvents * Math.min(1, ...shares);
}

type Test = SearchPlan["clauses"][number]["tests"][number];

/** Returns the share of the events of closed days that has to be read to find those that pass. */
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
