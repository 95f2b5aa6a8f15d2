import type { SearchPlan } from "./plan-search.ts";

/** Reading an archived event takes this share of the time of reading an event in Postgres. */
const ARCHIVED_SHARE = 0.1;

/** Returns whether an answer reads only its page and counts that are at hand, however many events there are. */
export function readsPageOnly({ clauses, groupBy }: Pick<SearchPlan, "clauses" | "groupBy">): boolean {
  return groupBy.length === 0 && clauses.length === 0;
}

/**
 * Returns roughly how many events of Postgres an answer has to read, which is compared with a limit before anything runs.
 * `events` are those in the window, `archivedEvents` those of them in files.
 */
export function estimateCost(
  plan: Pick<SearchPlan, "clauses" | "groupBy" | "pageSize">,
  { events, archivedEvents }: { events: number; archivedEvents: number },
): number {
  if (readsPageOnly(plan)) return Math.min(events, 2 * plan.pageSize);
  const archived = Math.min(events, archivedEvents);
  return events - archived + archived * ARCHIVED_SHARE;
}
