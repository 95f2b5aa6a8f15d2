import { UsageError } from "#lib/errors.ts";
import {
  type BacktestOptions,
  type BacktestReport,
  createBacktest,
} from "#stages/detection/backtest/backtest.ts";
import type { StoreIo } from "../store/store-command.ts";
import { readCounts, type TakeRow } from "./read-counts.ts";
import { readInput } from "./read-input.ts";
import { createRowSorter } from "./row-sorter.ts";

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
