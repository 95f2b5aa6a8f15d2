/** Saves an export in a file, compressed and whole. */

import { createReadStream, createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip, createZstdCompress } from "node:zlib";
import { createEventCounter, withHeader } from "#archive/rules/export-lines.ts";
import type { SearchPlan } from "#archive/rules/query/plan-search.ts";
import { describeExport, type ExportText, exportHead, exportZones } from "#archive/search/export-events.ts";
import { countUnfiltered } from "#archive/search/find-rows.ts";
import { exportParquet } from "#archive/search/read-union.ts";
import type { Config } from "#config/config.ts";
import { type Queryable } from "#db/client.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { formatBytes } from "#lib/disk.ts";
import { publishFile } from "#lib/files.ts";
import { many, showTime } from "#lib/format.ts";
import { createProgressLine, drawBar, type ProgressLine, renderProgress } from "#lib/progress-bar.ts";
import { escapeText } from "#lib/text.ts";

import { writeText } from "../edge/edge-io.ts";
import { findZones } from "../options/read-options.ts";
import { type StoreIo, withSearch } from "../store/store-command.ts";

export const COMPRESSORS = { ".gz": createGzip, ".zst": createZstdCompress } as const;

export interface Target {
  readonly file: string;
  readonly form: "csv" | "ndjson";
  readonly compression: keyof typeof COMPRESSORS | null;
}

/** An export that is asked for. */
export interface WantedExport extends ExportText {
  /** The numbers of the zones, separated by commas, or `all`. */
  readonly zone: string;
  readonly plan: SearchPlan;
  /** Null: the standard output. */
  readonly target: Target | null;
}

/** The text of an export, with the header of a CSV. */
interface ExportSource {
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
  const line = createProgressLine(io.stderr, io.clock);
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
  { file, compression }: Pick<Target, "file" | "compression">,
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

/** Exports the events of the database and of the archive's files. */
export function exportHere(io: StoreIo, config: Config, wanted: WantedExport, actor: string): Promise<void> {
  const { zone, plan } = wanted;
  return withSearch(io, config, async (deps, { db }, signal) => {
    const zoneIds = await auditZones(db, config, zone, { plan, actor });
    const ocsf = { vendor: config.platformVendor, actions: config.alerting.actions };
    const asked = { zoneIds, plan, isMasked: false };
    const source = {
      async countUnfiltered(stopped: AbortSignal) {
        let events = 0;
        for (const one of zoneIds) events += await countUnfiltered(deps, one, plan, stopped);
        return events;
      },
      read(onReached: (from: number) => void) {
        const options = { ...wanted, ocsf, signal, onReached };
        const lines = exportZones((_, work) => work(deps), asked, options);
        const head = exportHead(wanted);
        return head === "" ? lines : withHeader(lines, head);
      },
    };
    await saveExport(io, wanted, source, signal);
  });
}

/** Returns the zones of an export, with an audit entry for each. */
async function auditZones(
  db: Queryable,
  config: Config,
  zone: string,
  { plan, actor }: Pick<ParquetExport, "plan" | "actor">,
): Promise<readonly number[]> {
  const zoneIds = await findZones(db, config, zone);
  for (const id of zoneIds) await writeAuditEntry(db, describeExport(actor, id, { plan, isMasked: false }));
  return zoneIds;
}

export interface ParquetExport {
  readonly zone: string;
  readonly plan: SearchPlan;
  /** A new file or folder, absolute. */
  readonly target: string;
  readonly actor: string;
}

/** Writes all events that match into one Parquet file. After a failure there is no file. */
export function exportOneFile(
  io: StoreIo,
  config: Config,
  { zone, plan, target, actor }: ParquetExport,
): Promise<void> {
  return withSearch(io, config, async (deps, { db }, signal) => {
    const zoneIds = await auditZones(db, config, zone, { plan, actor });
    const { path, remove, events } = await exportParquet(deps, zoneIds, plan, signal);
    try {
      const bytes = await writeFile({ file: target, compression: null }, createReadStream(path));
      io.stderr.write(`wrote ${escapeText(target)}: ${many(events, "event")}, ${formatBytes(bytes)}\n`);
    } finally {
      await remove();
    }
  });
}

interface ExportProgressOptions {
  readonly plan: Pick<SearchPlan, "from" | "to" | "clauses" | "methodClauses">;
  /** A CSV begins with a header. */
  readonly form: "csv" | "json";
  /** Null if nothing may be drawn. */
  readonly line: Pick<ProgressLine, "update"> | null;
  /** Returns milliseconds of any origin. */
  readonly clock: () => number;
}

/**
 * Draws how many events an export has written. Without filters the stored counts tell how many it will write. With
 * filters nobody knows before the end, so the bar shows how much of the span was read, where that is known.
 */
export function createExportProgress({ plan, form, line, clock }: ExportProgressOptions) {
  const countLines = createEventCounter(form);
  const headers = form === "csv" ? 1 : 0;
  const beganAt = clock();
  let reached: number | null = null;
  let events = 0;
  let total: number | null = null;
  const draw = () => {
    if (total !== null) {
      const rate = (events * 1_000) / Math.max(clock() - beganAt, 1);
      return line?.update(renderProgress({ done: events, total, rate }));
    }
    if (reached === null) return line?.update(many(events, "event"));
    const share = (plan.to - reached) / (plan.to - plan.from);
    const at = showTime(reached - (reached % 60_000));
    line?.update(`${drawBar(share)}  ${many(events, "event")}  back to ${at}`);
  };
  return {
    onReached: (from: number): void => {
      reached = from;
      draw();
    },
    /** Looks up the total while the export runs. Without it, the export goes on. */
    async findTotal(countUnfiltered: () => Promise<number>): Promise<void> {
      if (line === null || plan.clauses.length + plan.methodClauses.length > 0) return;
      total = await countUnfiltered().catch(() => null);
      draw();
    },
    async *watch(text: AsyncIterable<Buffer | string>): AsyncGenerator<Buffer, void, undefined> {
      for await (const chunk of text) {
        const bytes = Buffer.from(chunk);
        yield bytes;
        events = Math.max(0, countLines(bytes) - headers);
        draw();
      }
    },
    events: () => events,
  };
}
