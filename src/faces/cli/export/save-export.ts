import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip, createZstdCompress } from "node:zlib";
import { formatBytes } from "#lib/disk.ts";
import { publishFile } from "#lib/files.ts";
import { many } from "#lib/format.ts";
import { createProgressLine } from "#lib/progress-bar.ts";
import { escapeText } from "#lib/text.ts";
import type { ExportFormName } from "#model/kinds.ts";
import type { SearchPlan } from "#stages/archive/query/plan-search.ts";
import { writeText } from "../edge/write-text.ts";
import type { StoreIo } from "../store/store-command.ts";
import { createExportProgress } from "./export-progress.ts";

export const COMPRESSORS = { ".gz": createGzip, ".zst": createZstdCompress } as const;

export interface Target {
  readonly file: string;
  readonly form: "csv" | "ndjson";
  readonly compression: keyof typeof COMPRESSORS | null;
}

/** An export that is asked for. */
export interface WantedExport {
  readonly zoneId: number;
  readonly plan: SearchPlan;
  readonly form: Exclude<ExportFormName, "parquet">;
  /** Null: the standard output. */
  readonly target: Target | null;
}

/** The text of an export, with the header of a CSV. */
export interface ExportSource {
  /** `onReached` gets the time down to which the events were read, if that is known. */
  readonly read: (onReached: (from: number) => void) => AsyncIterable<Buffer | string>;
  /** Returns the number of events without regard to filters. */
  readonly countUnfiltered: (signal: AbortSignal) => Promise<number>;
}

/** Writes an export to its file or to the standard output, with a progress line. After a failure there is no file. */
export async function saveExport(
  io: StoreIo,
  { plan, form, target }: WantedExport,
  { read, countUnfiltered }: ExportSource,
  signal: AbortSignal,
): Promise<void> {
  const line = createProgressLine(io.stderr);
  const progress = createExportProgress({
    plan,
    form: form === "csv" ? "csv" : "json",
    // A line that is redrawn would be among the events on the screen.
    line: target !== null || io.stdout.isTTY !== true ? line : null,
    clock: () => performance.now(),
  });
  const counting = new AbortController();
  const total = progress.findTotal(() => countUnfiltered(AbortSignal.any([signal, counting.signal])));
  const text = progress.watch(read(progress.onReached));
  try {
    if (target === null) await writeText(io.stdout, text);
    else {
      const bytes = await writeFile(target, text);
      line.clear();
      const size = `${formatBytes(bytes)}${target.compression === null ? "" : " before compression"}`;
      const events = many(progress.events(), "event");
      io.stderr.write(`wrote ${escapeText(target.file)}: ${events}, ${size}\n`);
    }
  } finally {
    counting.abort();
    await total;
    line.clear();
  }
}

/** Returns the number of bytes before compression. After a failure there is no file. */
async function writeFile(
  { file, compression }: Target,
  text: AsyncIterable<string | Buffer>,
): Promise<number> {
  const temporary = `${file}.${process.pid}.tmp`;
  let bytes = 0;
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  const compressors = compression === null ? [] : [COMPRESSORS[compression]()];
  try {
    await pipeline([
      Readable.from(text, { objectMode: false }),
      counter,
      ...compressors,
      createWriteStream(temporary, { flags: "wx", mode: 0o600 }),
    ]);
    await publishFile(temporary, file);
    return bytes;
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
}
