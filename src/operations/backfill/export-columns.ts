import { DIMENSIONS, type EventRow } from "#adapters/edge/contract/event-logs.ts";
import { shortenText } from "#lib/text.ts";
import type { EventWithoutFacts } from "#model/waf-event.ts";
import { toSearchEvent } from "#stages/ingest/to-search-event.ts";
import { BackfillError } from "./backfill-error.ts";

/** The columns that identify an event. The platform documents only the first column of an export (API spec 4.8). */
const REQUIRED = ["timestamp", "logId"] as const;
const SHOWN_CHARS = 200;

type Column = (typeof REQUIRED)[number] | (typeof DIMENSIONS)[number];

/** The index of each column. Upper and lower case are equal, because the platform does not document the spelling. */
export type ExportColumns = ReadonlyMap<Column, number>;

/** Finds the columns. @throws {BackfillError} that names the missing required columns. */
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

/** Returns a record in the form of a search row, for EventRow. */
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
    `the export cannot be stored: its header "${shown}" has no column ${missing.join(" and no column ")}; ` +
    "use --route search or --route list";
  return new BackfillError("BACKFILL_HEADER", text);
}

/** Parses epoch ms, epoch seconds or ISO-8601. Returns other text unchanged, so that the schema refuses it. */
function toEpochMs(text: string): number | string {
  if (/^\d{9,15}(?:\.\d{1,20})?$/.test(text)) return Number(text);
  const at = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}.*(?:Z|[+-]\d{2}:?\d{2})$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  return Number.isNaN(at) ? text : at;
}

/** Sets dimensions without a column to null: unknown, not empty. The message is always unknown. */
export function toExportEvent(columns: ExportColumns, row: EventRow): EventWithoutFacts {
  const unknown = DIMENSIONS.filter((name) => !columns.has(name)).map((name) => [name, null]);
  return {
    ...toSearchEvent(row),
    ...(Object.fromEntries(unknown) as Partial<EventWithoutFacts>),
    message: null,
  };
}
