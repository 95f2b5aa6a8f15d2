/** Reads the platform's export. */
import { pipeline } from "node:stream/promises";
import { CsvError, parse } from "csv-parse";
import { toSearchEvent } from "#ingest/rules/read-page.ts";
import { ServiceError } from "#lib/errors.ts";
import { shortenText } from "#lib/text.ts";
import type { EventWithoutFacts } from "#model/waf-event.ts";
import { DIMENSIONS, type EventRow } from "#platform/contract/event-logs.ts";
import { BackfillError } from "./backfill-deps.ts";

/** The largest record. Without a limit, a record without an end would fill the memory. */
const MAX_RECORD_BYTES = 1_048_576;

const ENDLESS = "a record of the CSV file is too long";

export interface CsvRecord {
  readonly cells: readonly string[];
  /** The record as it is in the file, without its line end. */
  readonly text: string;
  /** The line of the file in which the record ends, from 1. */
  readonly line: number;
}

/** Thrown if a file is no CSV file. */
export class CsvFileError extends ServiceError {
  override readonly name = "CsvFileError";
  readonly code = "CSV_FILE";
  readonly disposition = "give-up";
}

interface Parsed {
  readonly record: readonly string[];
  readonly raw: string;
  readonly info: { readonly lines: number };
}

/**
 * Yields the records of a CSV file (RFC 4180; LF alone ends a line too, a byte order mark is skipped). An empty line is
 * no record. A quote inside an unquoted cell is part of the cell.
 * @throws {CsvFileError} when the file ends inside quotes, or a record is too long.
 */
export async function* readCsv(
  chunks: AsyncIterable<Buffer>,
  maxRecordBytes = MAX_RECORD_BYTES,
): AsyncGenerator<CsvRecord, void, undefined> {
  // The end of the last record. The limit of csv-parse is per cell, so it does not limit the number of cells.
  let endedAt = 0;
  const parser = parse({
    bom: true,
    info: true,
    max_record_size: maxRecordBytes,
    on_record(record: string[]) {
      endedAt = parser.info.bytes;
      return record;
    },
    raw: true,
    record_delimiter: ["\r\n", "\n"],
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
  });
  // If the chunks fail, the parser is destroyed and throws the failure below.
  pipeline(
    limitRecord(chunks, maxRecordBytes, () => endedAt),
    parser,
  ).catch(() => undefined);
  try {
    for await (const { record, raw, info } of parser as AsyncIterable<Parsed>)
      yield { cells: record, text: trimLineEnds(raw), line: info.lines };
  } catch (thrown) {
    throw thrown instanceof CsvError ? new CsvFileError(wordError(thrown)) : thrown;
  }
}

/** Throws if a record is too long. One chunk may not be parsed yet, so a record of up to twice the limit can pass. */
async function* limitRecord(chunks: AsyncIterable<Buffer>, maxBytes: number, endedAt: () => number) {
  let bytes = 0;
  for await (const chunk of chunks) {
    if (bytes - endedAt() > 2 * maxBytes) throw new CsvFileError(ENDLESS);
    bytes += chunk.length;
    yield chunk;
  }
}

/** Removes the parts of line ends that csv-parse leaves around a record. */
function trimLineEnds(raw: string): string {
  return raw.replace(/^[\r\n]+|\r?\n?$/g, "");
}

function wordError({ code }: CsvError): string {
  return code === "CSV_MAX_RECORD_SIZE" ? ENDLESS : "the CSV file ends in the middle of a record";
}

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
export function toEpochMs(text: string): number | string {
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
