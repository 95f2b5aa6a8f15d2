import { cutOut, readArchivedDays } from "#db/archive/archived-days.ts";
import { runCancellable } from "#db/postgres/transaction.ts";
import { copyOpenRows } from "#db/search/open-rows.ts";
import { inSearchTransaction } from "#db/search/search-condition.ts";
import type { SearchSource } from "#model/kinds.ts";
import { asksMethod, type SearchPlan } from "#stages/archive/query/plan-search.ts";
import { type FoundGroups, groupColumns, groupEvents, readGroups } from "#stages/archive/sql/group-events.ts";
import { findByMethod, writeFound } from "./find-by-method.ts";
import type { SearchDeps } from "./search-deps.ts";

interface AnsweredGroups extends FoundGroups {
  /** Whether files of the archive had a part in the answer. */
  readonly source: SearchSource;
}

/**
 * Returns one page of groups. Events that are not in files are copied out of Postgres as far as they pass the search, and
 * one statement of DuckDB reads both. The manifest and the copied events are of one view of the data.
 * @throws {UsageError} if a search about the method would have to read too many records
 */
export async function searchGroups(
  deps: SearchDeps,
  zoneId: number,
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<AnsweredGroups> {
  const { queries, files: reader } = deps;
  const columns = groupColumns(plan);
  const { path, remove } = reader.scratchFile();
  try {
    if (asksMethod(plan)) {
      const { events, source } = await findByMethod(deps, zoneId, plan, signal);
      if (events.length === 0) return { groups: [], total: 0, source };
      const statements = groupEvents(
        { files: [], openRows: await writeFound(zoneId, events, { path, columns }) },
        plan,
      );
      return { ...readGroups(await reader.read([], statements, signal), plan), source };
    }
    const { days, copied } = await runCancellable(queries, signal, (database) =>
      inSearchTransaction(database, async (tx, client) => {
        const days = await readArchivedDays(tx, zoneId, plan);
        const spans = cutOut(plan, days);
        return { days, copied: await copyOpenRows(client, zoneId, plan, { spans, columns, path }) };
      }),
    );
    const source = days.length > 0 ? "archive" : "events";
    if (days.length === 0 && copied === 0) return { groups: [], total: 0, source };
    const files = days.map(({ events }) => events);
    const openRows = copied === 0 ? null : { path, columns };
    const statements = groupEvents({ files: files.map(reader.eventsFileOf), openRows }, plan);
    return { ...readGroups(await reader.read(files, statements, signal), plan), source };
  } finally {
    await remove();
  }
}
