/** Exports as Parquet, and what an export contains. */
import { writeFile } from "node:fs/promises";
import { asksMethod, type SearchPlan } from "#archive/rules/query/plan-search.ts";
import { PARQUET_COLUMNS, exportParquet as toStatements } from "#archive/rules/sql/export-events.ts";
import type { ScratchFile } from "#db/archive/archive-reader.ts";
import { cutOut, readArchivedDays } from "#db/archive/archived-days.ts";
import { copyOpenRows, countEvents } from "#db/archive/open-rows.ts";
import { inSearchTransaction } from "#db/archive/search-condition.ts";
import { runCancellable } from "#db/postgres/transaction.ts";
import type { Span } from "#model/horizon.ts";
import { findByMethod, writeFound } from "./find-by-method.ts";
import { countDays } from "./find-rows.ts";
import type { SearchDeps } from "./searching.ts";

/**
 * Writes all events that a search finds into one Parquet file, all of one view of the data, and returns the file, which
 * the caller removes. The time limit of searches applies, because the file can only be sent when it is complete.
 */
export async function exportParquet(
  deps: SearchDeps,
  zoneId: number,
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<ScratchFile> {
  const { queries, files: reader } = deps;
  const [open, exported] = [reader.scratchFile(), reader.scratchFile()];
  try {
    if (asksMethod(plan)) {
      const { events } = await findByMethod(deps, zoneId, plan, signal);
      const openRows = await writeFound(zoneId, events, { path: open.path, columns: PARQUET_COLUMNS });
      await reader.read([], toStatements({ files: [], openRows }, plan, exported.path), signal);
      return exported;
    }
    const days = await runCancellable(queries, signal, (database) =>
      inSearchTransaction(database, async (tx, client) => {
        const archived = await readArchivedDays(tx, zoneId, plan);
        const spans = cutOut(plan, archived);
        const wanted = { spans, columns: PARQUET_COLUMNS, path: open.path };
        return { archived, copied: await copyOpenRows(client, zoneId, plan, wanted) };
      }),
    );
    const files = days.archived.map(({ events }) => events);
    // Without any day there still is a file, without rows.
    const hasOpen = days.copied > 0 || files.length === 0;
    if (days.copied === 0 && hasOpen) await writeFile(open.path, "");
    const openRows = hasOpen ? { path: open.path, columns: PARQUET_COLUMNS } : null;
    const statements = toStatements({ files: files.map(reader.eventsFileOf), openRows }, plan, exported.path);
    await reader.read(files, statements, signal);
    return exported;
  } catch (thrown) {
    await exported.remove();
    throw thrown;
  } finally {
    await open.remove();
  }
}

/** The parts of a plan that an audit entry is about. */
export type ExportPlan = Pick<SearchPlan, "from" | "to" | "clauses" | "methodClauses">;

interface Exported {
  readonly plan: ExportPlan;
  readonly isMasked: boolean;
}

/**
 * Returns the audit entry of an export: the actor, the zone and the time range. Of the filters the entry has only the
 * fields: their texts may be addresses, and the entry outlives every erasure.
 */
export function describeExport(actor: string, zoneId: number, { plan, isMasked }: Exported) {
  const details = {
    from: new Date(plan.from).toISOString(),
    to: new Date(plan.to).toISOString(),
    filteredBy: [
      ...new Set(plan.clauses.flatMap(({ columns }) => columns)),
      ...(plan.methodClauses.length > 0 ? ["method"] : []),
    ],
    isMasked,
  };
  return { actor, action: "events.exported", subject: `zone ${zoneId}`, details };
}

/** Returns how many events of a zone a span has. Reads counts, and the events of cut hours and days only. */
export async function countUnfiltered(
  { queries, files }: SearchDeps,
  zoneId: number,
  { from, to }: Span,
  signal: AbortSignal,
): Promise<number> {
  const span = { from, to };
  const { days, open } = await runCancellable(queries, signal, (database) =>
    inSearchTransaction(database, async (tx) => {
      const days = await readArchivedDays(tx, zoneId, span);
      return { days, open: await countEvents(tx, zoneId, cutOut(span, days)) };
    }),
  );
  const counts = [...open, ...(await countDays(files, days, span, signal))];
  return counts.reduce((sum, { total }) => sum + total, 0);
}
