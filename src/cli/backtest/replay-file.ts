import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { toError, UsageError } from "../../errors.ts";
import { type BacktestOptions, type BacktestReport, createBacktest } from "../../spike/backtest.ts";
import { count, createProgressLine, drawBar } from "../progress-bar.ts";
import type { StoreIo } from "../store-command.ts";
import { readCounts } from "./read-counts.ts";

/**
 * Replays a CSV file of counts in one reading.
 * @throws {UsageError} when the file cannot be read or says something wrong.
 */
export async function replayFile(
  path: string,
  options: BacktestOptions,
  stderr: StoreIo["stderr"],
): Promise<BacktestReport> {
  const backtest = createBacktest(options);
  const line = createProgressLine(stderr);
  let rows = 0;
  const take = (series: string, minute: number, events: number) => {
    rows += 1;
    return backtest.take(series, minute, events);
  };
  let mistakes: string[];
  try {
    const { size } = await stat(path);
    const chunks = watchChunks(createReadStream(path, { highWaterMark: 1 << 18 }), (bytes) =>
      line.update(`${drawBar(size > 0 ? bytes / size : 0)}  ${count(rows)} rows`),
    );
    mistakes = await readCounts(chunks, take);
  } catch (thrown) {
    throw new UsageError([`--counts "${path}" must be a file that can be read: ${toError(thrown).message}`]);
  } finally {
    line.clear();
  }
  if (mistakes.length > 0) throw new UsageError(mistakes);
  return backtest.report();
}

/** A line is drawn a few times a second, however fast the disk is. */
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
