import { asksMethod, type SearchPlan } from "./plan-search.ts";

/** Reading an archived event takes this share of the time of reading an event in Postgres. */
const ARCHIVED_SHARE = 0.1;
/** Reading a record takes about as long as reading this many events. */
const RECORD_EVENTS = 10;
/** Maximum number of events whose records one search reads: some seconds of work. */
export const MAX_METHOD_EVENTS = 10_000;

/** Returns whether an answer reads only its page and counts that are at hand, however many events there are. */
export function readsPageOnly(plan: Pick<SearchPlan, "clauses" | "groupBy" | "methodClauses">): boolean {
  return plan.groupBy.length === 0 && plan.clauses.length === 0 && !asksMethod(plan);
}

/**
 * Returns roughly how many events of Postgres an answer has to read, which is compared with a limit before anything runs.
 * `events` are those in the window, `archivedEvents` those of them in files.
 */
export function estimateCost(
  plan: Pick<SearchPlan, "clauses" | "groupBy" | "methodClauses" | "pageSize">,
  { events, archivedEvents }: { events: number; archivedEvents: number },
): number {
  if (readsPageOnly(plan)) return Math.min(events, 2 * plan.pageSize);
  const archived = Math.min(events, archivedEvents);
  const records = asksMethod(plan) ? RECORD_EVENTS * Math.min(events, MAX_METHOD_EVENTS) : 0;
  return events - archived + archived * ARCHIVED_SHARE + records;
}
