import { cutOut, readArchivedDays } from "#db/archive/archived-days.ts";
import { runCancellable } from "#db/postgres/transaction.ts";
import { countEvents } from "#db/search/open-rows.ts";
import { inSearchTransaction } from "#db/search/search-condition.ts";
import type { Span } from "#model/horizon.ts";
import { countDays } from "./find-rows.ts";
import type { SearchDeps } from "./search-deps.ts";

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
