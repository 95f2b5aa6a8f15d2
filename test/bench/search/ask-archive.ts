import type { Database } from "../../../db/client.ts";
import { searchGroups } from "../../../db/search/search-groups.ts";
import { searchRows } from "../../../db/search/search-rows.ts";
import { planSearch } from "../../../src/archive/query/plan-search.ts";
import type { Search } from "../../../src/archive/query/search.ts";
import type { Answer } from "./answer.ts";

/** The archive's answer, as its routes get it, and where it came from. */
export async function askArchive(
  database: Database,
  zoneId: number,
  search: Search,
): Promise<{ answer: Answer; source: "roll-up" | "events" }> {
  const plan = planSearch(search);
  if (search.groupBy.length === 0) {
    const { rows, total } = await searchRows(database, zoneId, plan);
    const shown = rows.map(({ logId, occurredAt, fields }) => ({ logId, at: occurredAt, fields }));
    return { answer: { total, rows: shown }, source: "events" };
  }
  const { groups, total, source } = await searchGroups(database, zoneId, plan);
  const shown = groups.map(({ sparkline, ...group }) =>
    sparkline === null ? group : { ...group, sparkline },
  );
  return { answer: { total, groups: shown }, source };
}
