import { DIMENSIONS, type EventRow } from "../../edge/contract/event-logs-search.ts";
import { toSearchEvent } from "../../ingest/to-search-event.ts";
import { shortenText } from "../../lib/escape-text.ts";
import type { WafEvent } from "../../model/waf-event.ts";
import { BackfillError } from "./backfill-error.ts";

/** Only the first column of an export is documented (platform API spec 4.8); without these no event can be told. */
const REQUIRED = ["timestamp", "logId"] as const;
const SHOWN_CHARS = 200;

type Column = (typeof REQUIRED)[number] | (typeof DIMENSIONS)[number];

/** Where each column is. Upper and lower case are the same: the spelling is not documented. */
export type ExportColumns = ReadonlyMap<Column, number>;

/** @throws {BackfillError} naming the columns without which nothing can be stored. */
export function readExportHeader(header: readonly string[]): ExportColumns {
  const names = header.map((name) => name.replace("\uFEFF", "").trim().toLowerCase());
  const columns = new Map<Column, number>();
  for (const column of [...REQUIRED, ...DIMENSIONS]) {
    const index = names.indexOf(column.toLowerCase());
    if (index !== -1) columns.set(column, index);
  }
  const missing = REQUIRED.filter((column) => !columns.has(column));
  if (missing.length > 0) throw refuse(missing, header);
  return columns;
}

/** A record as a search would show it, to be read with EventRow. */
export function toExportEntry(columns: ExportColumns, cells: readonly string[]): unknown {
  const cell = (column: Column) => cells[columns.get(column) ?? -1];
  const fields = DIMENSIONS.flatMap((name) => (columns.has(name) ? [[name, cell(name) ?? ""]] : []));
  return {
    logId: cell("logId"),
    timestamp: toEpochMs(cell("timestamp") ?? ""),
    fields: Object.fromEntries(fields) as unknown,
  };
}

function refuse(missing: readonly string[], header: readonly string[]): BackfillError {
  const shown = shortenText(header.join(","), SHOWN_CHARS);
  const text =
    `the export cannot be stored: its header has no column ${missing.join(" and no column ")} (it is "${shown}"); ` +
    "use --route search or --route list";
  return new BackfillError("BACKFILL_HEADER", text);
}

/** Epoch ms or ISO-8601; anything else is left to be refused. */
function toEpochMs(text: string): number | string {
  if (/^\d{11,15}$/.test(text)) return Number(text);
  const at = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}.*(?:Z|[+-]\d{2}:?\d{2})$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  return Number.isNaN(at) ? text : at;
}

/** What the file has no column for is not known, rather than known to be empty; the message never is. */
export function toExportEvent(columns: ExportColumns, row: EventRow): WafEvent {
  const unknown = DIMENSIONS.filter((name) => !columns.has(name)).map((name) => [name, null]);
  return { ...toSearchEvent(row), ...(Object.fromEntries(unknown) as Partial<WafEvent>), message: null };
}
