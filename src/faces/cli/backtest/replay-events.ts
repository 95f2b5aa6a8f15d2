/** Replays a file of events. */

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import type { ReplayedMessage } from "#alerts/rules/backtest/replay-incidents.ts";
import { createZoneReplay, type ReplayPolicy, type ZoneReplay } from "#alerts/rules/backtest/replay-zone.ts";
import { judgeVerdict } from "#detection/rules/verdict/judge-verdict.ts";
import { toError, UsageError } from "#lib/errors.ts";
import { formatWhole } from "#lib/format.ts";
import { createProgressLine, drawBar } from "#lib/progress-bar.ts";
import type { ActionStates } from "#model/action-class.ts";
import type { StoreIo } from "../store/store-command.ts";
import { readEntries, readEvents, type TakeEvent } from "./read-events.ts";

export interface EventsReport {
  readonly zones: number;
  readonly rows: number;
  readonly zoneDays: number;
  /** Messages by zone, in the order of time. */
  readonly messages: readonly (ReplayedMessage & { readonly zone: string })[];
}

/**
 * Replays a file of events: CSV, or NDJSON if it begins with a brace. Rows of a zone come in the order of time; zones may alternate.
 * @throws {UsageError} when the file cannot be read or has a mistake.
 */
export async function replayEvents(
  path: string,
  { actions, ...policy }: ReplayPolicy & { readonly actions: ActionStates },
  stderr: StoreIo["stderr"],
): Promise<EventsReport> {
  const zones = new Map<string, { replay: ZoneReplay; firstSecond: number; lastSecond: number }>();
  let rows = 0;
  await readInput({ flag: "--events", path, stderr }, (chunks, onRow) =>
    readAny(chunks, actions, (zone, second, event) => {
      const one = zones.get(zone) ?? {
        replay: createZoneReplay({ ...policy, judge: (evidence) => judgeVerdict(evidence) }),
        firstSecond: second,
        lastSecond: second,
      };
      if (second < one.lastSecond) return one.lastSecond;
      zones.set(zone, one);
      one.lastSecond = second;
      one.replay.take(event, Math.floor(second / 60));
      rows += 1;
      onRow();
      return undefined;
    }),
  );
  const messages = [...zones].flatMap(([zone, { replay }]) =>
    replay.finish().map((message) => ({ zone, ...message })),
  );
  const seconds = [...zones.values()].reduce((sum, one) => sum + one.lastSecond - one.firstSecond, 0);
  return { zones: zones.size, rows, zoneDays: seconds / 86_400, messages };
}

/** Reads CSV or NDJSON, by the first character. */
async function readAny(
  chunks: AsyncIterable<Buffer>,
  actions: ActionStates,
  take: TakeEvent,
): Promise<string[]> {
  const pieces = chunks[Symbol.asyncIterator]();
  const first = await pieces.next();
  async function* all() {
    if (first.done === true) return;
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => pieces };
  }
  const isJson = first.done !== true && /^\ufeff?\s*\{/.test(first.value.toString("utf8", 0, 64));
  return isJson ? readEntries(all(), actions, take) : readEvents(all(), actions, take);
}

/**
 * Reads an input file in chunks and draws the progress. A file whose name ends in `.gz` is decompressed. `read` gets
 * the chunks and a function to call once per row, and returns the mistakes.
 * @throws {UsageError} when the file cannot be read or has a mistake.
 */
export async function readInput(
  { flag, path, stderr }: { flag: string; path: string; stderr: StoreIo["stderr"] },
  read: (chunks: AsyncIterable<Buffer>, onRow: () => void) => Promise<string[]>,
): Promise<void> {
  const line = createProgressLine(stderr);
  let rows = 0;
  let mistakes: string[];
  try {
    const { size } = await stat(path);
    const file = watchChunks(createReadStream(path, { highWaterMark: 1 << 18 }), (bytes) =>
      line.update(`${drawBar(size > 0 ? bytes / size : 0)}  ${formatWhole(rows)} rows`),
    );
    const chunks = path.endsWith(".gz") ? decompress(file) : file;
    mistakes = await read(chunks, () => {
      rows += 1;
    });
  } catch (thrown) {
    throw new UsageError([`${flag} "${path}" must be a file that can be read: ${toError(thrown).message}`]);
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

function decompress(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const gunzip = createGunzip({ chunkSize: 1 << 18 });
  // A failure of the file destroys the decompressor, whose reader then throws it.
  pipeline(chunks, gunzip).catch(() => undefined);
  return gunzip;
}
