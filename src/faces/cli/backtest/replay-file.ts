/** Replays a file of counts. */

import {
  type BacktestOptions,
  type BacktestReport,
  createBacktest,
} from "#detection/rules/backtest/backtest.ts";
import { UsageError } from "#lib/errors.ts";
import { formatWhole } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { CsvFileError, type CsvRecord, readCsv } from "#proof/backfill/read-csv.ts";
import type { StoreIo } from "../store/store-command.ts";
import { readInput } from "./replay-events.ts";

/**
 * Replays a CSV file of counts. If the rows of a series are out of order, reads the file a second time and sorts the
 * rows in memory.
 * @throws {UsageError} when the file cannot be read or has a mistake.
 */
export async function replayFile(
  path: string,
  options: BacktestOptions,
  stderr: StoreIo["stderr"],
): Promise<BacktestReport> {
  const backtest = createBacktest(options);
  let isSorted = true;
  await readFile(path, stderr, (series, minute, events) => {
    // After the first row out of order, this pass only looks for mistakes.
    const after = isSorted ? backtest.take(series, minute, events) : undefined;
    if (after === minute) return after;
    isSorted &&= after === undefined;
    return undefined;
  });
  if (isSorted) return backtest.report();
  const rows = createRowSorter();
  await readFile(path, stderr, rows.add);
  const sorted = createBacktest(options);
  const mistakes = rows.replay(sorted.take);
  if (mistakes.length > 0) throw new UsageError(mistakes);
  return sorted.report();
}

function readFile(path: string, stderr: StoreIo["stderr"], take: TakeRow): Promise<void> {
  return readInput({ flag: "--counts", path, stderr }, (chunks, onRow) =>
    readCounts(chunks, (series, minute, events) => {
      onRow();
      return take(series, minute, events);
    }),
  );
}

/** The longest line that is read. Without a limit, a file without line ends would fill the memory. */
const MAX_LINE_BYTES = 65_536;
/** Further mistakes are usually of the same kind. */
const MAX_MISTAKES = 10;
const MAX_COUNT = 30_000_000;
/** The year 2100. A larger number is a time in milliseconds. */
const MAX_SECONDS = 4_102_444_800;

const COLUMNS = ["series", "timestamp", "count"] as const;
type Column = (typeof COLUMNS)[number];

const ORDER_RULE = "the previous row of the series";

const RULES: Record<Column, string> = {
  series: "a name that is not empty",
  timestamp: "the epoch second at which a minute starts, a multiple of 60",
  // Formatted when it is shown: the first format of a process takes 10 ms.
  get count() {
    return `a whole number from 0 to ${formatWhole(MAX_COUNT)}`;
  },
};

/** Takes one row. If the row is out of order, returns the minute that it must come after. */
type TakeRow = (series: string, minute: number, count: number) => number | undefined;

/**
 * Reads a CSV file of counts per series and minute in chunks. The header names the columns, in any order; other columns
 * are ignored. Returns the mistakes, each with line, column, value and rule. Stops after ten mistakes.
 */
async function readCounts(chunks: AsyncIterable<Buffer>, take: TakeRow): Promise<string[]> {
  const reader = createRecordReader(take);
  let line = 0;
  try {
    for await (const record of readCsv(chunks, MAX_LINE_BYTES)) {
      line = record.line;
      reader.read(record);
      if (reader.mistakes.length >= MAX_MISTAKES || reader.isWithoutHeader()) return reader.mistakes;
    }
  } catch (thrown) {
    if (!(thrown instanceof CsvFileError)) throw thrown;
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

/** Returns the index of each column, or null if a column is missing. */
function readHeader(cells: readonly string[]): Record<Column, number> | null {
  const names = cells.map((name) => name.trim());
  const [series, timestamp, count] = COLUMNS.map((name) => names.indexOf(name));
  if (series === undefined || timestamp === undefined || count === undefined) return null;
  return Math.min(series, timestamp, count) < 0 ? null : { series, timestamp, count };
}

function headerMistake(line: number, text: string): string {
  return `line ${line}: "${escapeText(text.slice(0, 80))}" must be the header: ${COLUMNS.join(",")}`;
}

/** Returns NaN for any other text. Some tools write 12 as `12.0`. */
function toInteger(text: string | undefined, max: number): number {
  const value = text !== undefined && /^\d{1,15}(?:\.0+)?$/.test(text) ? Number(text) : Number.NaN;
  return value <= max ? value : Number.NaN;
}

/** Larger than every count, so that a minute and a count fit exactly into one number. */
const COUNTS = 2 ** 25;

/** Holds all rows in memory, about eight bytes each, and replays them by series, oldest first. */
function createRowSorter() {
  const bySeries = new Map<string, number[]>();

  function add(series: string, minute: number, count: number): undefined {
    const rows = bySeries.get(series);
    if (rows === undefined) bySeries.set(series, [minute * COUNTS + count]);
    else rows.push(minute * COUNTS + count);
  }

  /** Returns a mistake for every minute that occurs twice in a series. */
  function replay(take: TakeRow): string[] {
    const mistakes: string[] = [];
    for (const [series, rows] of bySeries) {
      for (const row of Float64Array.from(rows).sort()) {
        const minute = Math.floor(row / COUNTS);
        if (take(series, minute, row % COUNTS) === undefined || mistakes.length >= MAX_MISTAKES) continue;
        const name = escapeText(series.slice(0, 80));
        mistakes.push(
          `series "${name}", column timestamp: "${minute * 60}" must occur only once in a series`,
        );
      }
    }
    return mistakes;
  }

  return { add, replay };
}
