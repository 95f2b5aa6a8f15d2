import { planSearch, type Search } from "#archive/rules/query/plan-search.ts";
import { searchRows } from "#archive/search/find-rows.ts";
import { searchGroups } from "#archive/search/read-union.ts";
import type { SearchDeps } from "#archive/search/searching.ts";
import type { Answer } from "./answer.ts";

/** The archive's answer, as its routes get it. */
export async function askArchive(deps: SearchDeps, zoneId: number, search: Search): Promise<Answer> {
  const plan = planSearch(search);
  const { signal } = new AbortController();
  if (search.groupBy.length === 0) {
    const { rows, total } = await searchRows(deps, zoneId, plan, signal);
    return { total, rows: rows.map(({ logId, occurredAt, fields }) => ({ logId, at: occurredAt, fields })) };
  }
  const { groups, total } = await searchGroups(deps, [zoneId], plan, signal);
  const shown = groups.map(({ sparkline, ...group }) =>
    sparkline === null ? group : { ...group, sparkline },
  );
  return { total, groups: shown };
}
