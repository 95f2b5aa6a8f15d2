import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { toError, UsageError } from "#lib/errors.ts";
import { formatWhole } from "#lib/format.ts";
import { createProgressLine, drawBar } from "#lib/progress-bar.ts";
import type { StoreIo } from "../store/store-command.ts";

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
