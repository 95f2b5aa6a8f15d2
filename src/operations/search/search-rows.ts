import { asksMethod, type SearchPlan } from "#stages/archive/query/plan-search.ts";
import { findByMethod } from "./find-by-method.ts";
import { type FoundPage, findRows } from "./find-rows.ts";
import type { SearchDeps } from "./search-deps.ts";

/**
 * Returns one page of events, newest first; those of the same millisecond by log id, byte by byte, the greatest first.
 * @throws {UsageError} if a search about the method would have to read too many records
 */
export async function searchRows(
  deps: SearchDeps,
  zoneId: number,
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<FoundPage> {
  if (!asksMethod(plan)) return findRows(deps, zoneId, plan, signal);
  const { events, source } = await findByMethod(deps, zoneId, plan, signal);
  const first = plan.page * plan.pageSize;
  const rows = events.slice(first, first + plan.pageSize).map(({ event }) => event);
  return { rows, total: events.length, source };
}
