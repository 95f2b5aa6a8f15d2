import { EVENT_FIELD_IDS, EVENT_FILE_COLUMNS } from "#model/archive-layout.ts";
import type { SearchPlan } from "../query/plan-search.ts";
import { type EventSource, prepareSource, quote, selectEvents } from "./event-source.ts";
import { duck, type Piece, raw } from "./piece.ts";

/** The columns of an exported file: those of the archive's event files. */
export const PARQUET_COLUMNS = EVENT_FILE_COLUMNS.map(({ name }) => name);

/** Returns the statements that write all events that a search finds into a Parquet file, unsorted. No value is null. */
export function exportParquet(
  source: EventSource,
  plan: Pick<SearchPlan, "from" | "to" | "clauses">,
  target: string,
): Piece[] {
  const events = selectEvents(source, plan, PARQUET_COLUMNS);
  const options = `format parquet, parquet_version v2, compression zstd, compression_level 3, row_group_size 32768,
    ${EVENT_FIELD_IDS}`;
  return [...prepareSource(source), duck`copy (${events}) to ${raw(quote(target))} (${raw(options)})`];
}
