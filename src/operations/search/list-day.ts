import { readArchivedDays } from "#db/archive/archived-days.ts";
import { runCancellable } from "#db/postgres/transaction.ts";
import { searchOnward } from "#db/search/open-rows.ts";
import { inSearchTransaction } from "#db/search/search-condition.ts";
import { DAY_MS } from "#lib/units.ts";
import { countUpTo } from "#stages/archive/sql/find-rows.ts";
import { type FoundEvent, readArchivedRows } from "./find-rows.ts";
import type { SearchDeps } from "./search-deps.ts";

interface DayPage {
  /** Start of the UTC day, epoch ms. */
  readonly from: number;
  /** The last event of the previous page; null for the first page. */
  readonly after: { readonly occurredAt: number; readonly logId: string } | null;
  readonly limit: number;
}

/**
 * Returns the next events of a day after a position, oldest first; those of one millisecond by log id, byte by byte. A
 * position is an event, so a page stays the same when its day moves into the archive.
 */
export async function listDay(
  { queries, files }: SearchDeps,
  zoneId: number,
  { from, after, limit }: DayPage,
  signal: AbortSignal,
): Promise<FoundEvent[]> {
  const window = { from, to: from + DAY_MS };
  const found = await runCancellable(queries, signal, (database) =>
    inSearchTransaction(database, async (tx) => {
      const [day] = await readArchivedDays(tx, zoneId, window);
      return day === undefined
        ? { events: await searchOnward(tx, zoneId, { ...window, clauses: [], after, limit }) }
        : { day };
    }),
  );
  if ("events" in found) return found.events.map((event) => ({ ...event, archived: null }));
  const { day } = found;
  const first = after === null ? 0 : await skipTo(files, day.events, after, signal);
  const count = Math.min(limit, day.rows - first);
  return count <= 0 ? [] : readArchivedRows(files, [{ day, rows: { first, count } }], signal);
}

async function skipTo(
  files: SearchDeps["files"],
  file: Parameters<SearchDeps["files"]["pathOf"]>[0],
  after: NonNullable<DayPage["after"]>,
  signal: AbortSignal,
): Promise<number> {
  const [row = "[0]"] = await files.read([file], [countUpTo(files.pathOf(file), after)], signal);
  return (JSON.parse(row) as [number])[0];
}
