import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import {
  type BacktestOptions,
  type BacktestReport,
  createBacktest,
} from "../../detection/backtest/backtest.ts";
import { toError, UsageError } from "../../lib/errors.ts";
import { count, createProgressLine, drawBar } from "../../lib/progress-bar.ts";
import type { StoreIo } from "../store/store-command.ts";
import { readCounts, type TakeRow } from "./read-counts.ts";
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

async function readFile(path: string, stderr: StoreIo["stderr"], take: TakeRow): Promise<void> {
  const line = createProgressLine(stderr);
  let rows = 0;
  let mistakes: string[];
  try {
    const { size } = await stat(path);
    const chunks = watchChunks(createReadStream(path, { highWaterMark: 1 << 18 }), (bytes) =>
      line.update(`${drawBar(size > 0 ? bytes / size : 0)}  ${count(rows)} rows`),
    );
    mistakes = await readCounts(chunks, (series, minute, events) => {
      rows += 1;
      return take(series, minute, events);
    });
  } catch (thrown) {
    throw new UsageError([`--counts "${path}" must be a file that can be read: ${toError(thrown).message}`]);
  } finally {
    line.clear();
  }
  if (mistakes.length > 0) throw new UsageError(mistakes);
}

/** Reports progress after every 16th chunk, so that a fast disk does not redraw the line too often. */
async function* watchChunks(chunks: AsyncIterable<Buffer>, update: (bytes: number) => void) {
  let bytes = 0;
  let pieces = 0;
  for await (const chunk of chunks) {
    yield chunk;
    bytes += chunk.length;
    pieces += 1;
    if (pieces % 16 === 0) update(bytes);
  }
}
