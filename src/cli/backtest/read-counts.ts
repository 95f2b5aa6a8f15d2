import { escapeText } from "../../lib/escape-text.ts";
import { BackfillError } from "../../operations/backfill/backfill-error.ts";
import { type CsvRecord, readCsv } from "../../operations/backfill/read-csv.ts";

/** A line that does not end is no line of counts; without a bound it would be held in memory as a whole. */
const MAX_LINE_BYTES = 65_536;
/** More are of the same kind. */
const MAX_MISTAKES = 10;
const MAX_COUNT = 30_000_000;
/** The year 2100: beyond it lie milliseconds. */
const MAX_SECONDS = 4_102_444_800;

const COLUMNS = ["series", "timestamp", "count"] as const;
type Column = (typeof COLUMNS)[number];

const ORDER_RULE = "the row before of its series";

const RULES: Record<Column, string> = {
  series: "a name, not empty",
  timestamp: "the epoch second at which a minute starts, a multiple of 60",
  count: `a whole number from 0 to ${MAX_COUNT.toLocaleString("en-US")}`,
};

/** Takes one row; returns the minute it must come after where it is refused for its place in its series. */
export type TakeRow = (series: string, minute: number, count: number) => number | undefined;

/**
 * Reads a CSV file of counts per series and minute, at most a piece of it at a time. The header names the columns;
 * they may stand in any order, and others are passed over. Returns the mistakes, each with line, column, value and
 * rule; after ten it stops.
 */
export async function readCounts(chunks: AsyncIterable<Buffer>, take: TakeRow): Promise<string[]> {
  const reader = createRecordReader(take);
  let line = 0;
  try {
    for await (const record of readCsv(chunks, MAX_LINE_BYTES)) {
      line = record.line;
      reader.read(record);
      if (reader.mistakes.length >= MAX_MISTAKES || reader.isWithoutHeader()) return reader.mistakes;
    }
  } catch (thrown) {
    if (!(thrown instanceof BackfillError)) throw thrown;
    return [...reader.mistakes, `line ${line + 1}: ${thrown.message}`];
  }
  return line === 0 ? [headerMistake(1, "")] : reader.mistakes;
}

function createRecordReader(take: TakeRow) {
  const mistakes: string[] = [];
  let columns: Record<Column, number> | null | undefined;

  function readRow({ cells, line }: CsvRecord, at: Record<Column, number>): void {
    const wrong = (column: Column, value: string | undefined, rule = RULES[column]): void => {
      const shown = value === undefined ? "is missing; it" : `"${escapeText(value.slice(0, 80))}"`;
      mistakes.push(`line ${line}, column ${column}: ${shown} must be ${rule}`);
    };
    const [series, seconds, number] = [cells[at.series], cells[at.timestamp], cells[at.count]];
    const minute = toInteger(seconds, MAX_SECONDS) / 60;
    const count = toInteger(number, MAX_COUNT);
    if (series === undefined || series === "") return wrong("series", series);
    if (!Number.isInteger(minute)) return wrong("timestamp", seconds);
    if (Number.isNaN(count)) return wrong("count", number);
    const after = take(series, minute, count);
    if (after !== undefined) wrong("timestamp", seconds, `later than ${after * 60}, ${ORDER_RULE}`);
  }

  function read(record: CsvRecord): void {
    if (columns === undefined) columns = readHeader(record.cells);
    else if (columns !== null) readRow(record, columns);
    if (columns === null) mistakes.push(headerMistake(record.line, record.text));
  }

  // Without a header every further line would be wrong too.
  return { read, mistakes, isWithoutHeader: () => columns === null };
}

/** Where each column stands; null where one is missing. */
function readHeader(cells: readonly string[]): Record<Column, number> | null {
  const names = cells.map((name) => name.trim());
  const [series, timestamp, count] = COLUMNS.map((name) => names.indexOf(name));
  if (series === undefined || timestamp === undefined || count === undefined) return null;
  return Math.min(series, timestamp, count) < 0 ? null : { series, timestamp, count };
}

function headerMistake(line: number, text: string): string {
  return `line ${line}: "${escapeText(text.slice(0, 80))}" must be the header: ${COLUMNS.join(",")}`;
}

/** NaN for anything else; `12.0` is what some tools make of 12. */
function toInteger(text: string | undefined, max: number): number {
  const value = text !== undefined && /^\d{1,15}(?:\.0+)?$/.test(text) ? Number(text) : Number.NaN;
  return value <= max ? value : Number.NaN;
}
