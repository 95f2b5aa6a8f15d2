import { pipeline } from "node:stream/promises";
import { CsvError, parse } from "csv-parse";
import { BackfillError } from "./backfill-error.ts";

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

interface Parsed {
  readonly record: readonly string[];
  readonly raw: string;
  readonly info: { readonly lines: number };
}

/**
 * Yields the records of a CSV file (RFC 4180; LF alone ends a line too, a byte order mark is skipped). An empty line is
 * no record. A quote inside an unquoted cell is part of the cell.
 * @throws {BackfillError} when the file ends inside quotes, or a record is too long.
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
    throw thrown instanceof CsvError ? new BackfillError("BACKFILL_CSV", wordError(thrown)) : thrown;
  }
}

/** Throws if a record is too long. One chunk may not be parsed yet, so a record of up to twice the limit can pass. */
async function* limitRecord(chunks: AsyncIterable<Buffer>, maxBytes: number, endedAt: () => number) {
  let bytes = 0;
  for await (const chunk of chunks) {
    if (bytes - endedAt() > 2 * maxBytes) throw new BackfillError("BACKFILL_CSV", ENDLESS);
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
