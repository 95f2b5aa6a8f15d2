import { createWriteStream, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { nextMessage, startChild, stopChild } from "./child.ts";
import { LAUNCH } from "./launch-options.ts";
import type { Verdict } from "./measure.ts";
import { listTree, readCpuMs, readMemory } from "./process-tree.ts";
import { addRecords } from "./search/add-records.ts";
import { createDayRenderer } from "./search/day-events.ts";
import { openPostgres } from "./search/postgres.ts";
import { createWorld } from "./search/world.ts";
import { alignColumns, toVerdictRow } from "./tables.ts";

const ZONE = 101;
const DAY = "2026-11-12";
const SAMPLE_MS = 50;

export interface ArchivedDayFigures {
  readonly events: number;
  readonly eventBytes: number;
  readonly recordBytes: number;
  /** Of all processes, Postgres's included. */
  readonly cpuUs: number;
  readonly seconds: number;
  /** The most memory that the service's process and DuckDB's took at one time. */
  readonly peakBytes: number;
  /** The most that each of the two took. */
  readonly serviceBytes: number;
  readonly duckdbBytes: number;
}

/** Archives one day of about so many events, each with a record, in processes that have the service's bounds. */
export async function benchArchiveDay(
  events: number,
  onProgress: (done: number, what: string) => void,
): Promise<ArchivedDayFigures> {
  const parent = mkdtempSync(path.join(tmpdir(), "longwatch-bench-"));
  const folder = path.join(parent, "archive");
  mkdirSync(folder);
  const postgres = await openPostgres(path.join(parent, "postgres"));
  try {
    onProgress(0, "making the day");
    const from = Date.parse(DAY);
    const file = path.join(parent, "day.csv");
    // The asked zone has six tenths of the events.
    const plan = { day: DAY, from, to: from + 86_400_000, events: Math.round(events / 0.6) };
    await pipeline(
      Readable.from(createDayRenderer("bench", createWorld("bench"))(plan)),
      createWriteStream(file),
    );
    await postgres.addDay(DAY, file, from + 5 * 86_400_000);
    rmSync(file);
    onProgress(0.4, "making its records");
    await addRecords(postgres.database, ZONE, DAY);
    onProgress(0.7, "archiving it");
    return await archive(postgres.url, folder);
  } finally {
    await postgres.stop();
    rmSync(parent, { recursive: true, force: true });
  }
}

async function archive(url: string, folder: string): Promise<ArchivedDayFigures> {
  const [cpuBefore, startedAt] = [readCpuMs(listTree()), performance.now()];
  const child = startChild("archive/archive-one-day.ts", [url, folder, String(ZONE), DAY], LAUNCH);
  try {
    const ended = nextMessage<{ rows: number; bytes: number }[]>(child);
    let [peakBytes, serviceBytes, duckdbBytes] = [0, 0, 0];
    const state = { isDone: false };
    void ended.finally(() => (state.isDone = true)).catch(() => undefined);
    while (!state.isDone) {
      const [service = 0, ...others] = listTree(child.pid);
      const [own, theirs] = [readMemory([service]), readMemory(others)];
      peakBytes = Math.max(peakBytes, own + theirs);
      serviceBytes = Math.max(serviceBytes, own);
      duckdbBytes = Math.max(duckdbBytes, theirs);
      await Promise.race([ended, delay(SAMPLE_MS)]);
    }
    const [ofEvents, ofRecords] = await ended;
    const rows = ofEvents?.rows ?? 0;
    return {
      events: rows,
      eventBytes: (ofEvents?.bytes ?? 0) / rows,
      recordBytes: (ofRecords?.bytes ?? 0) / rows,
      cpuUs: ((readCpuMs(listTree()) - cpuBefore) * 1_000) / rows,
      seconds: (performance.now() - startedAt) / 1_000,
      peakBytes,
      serviceBytes,
      duckdbBytes,
    };
  } finally {
    await stopChild(child);
  }
}

export function reportArchiveDay(figures: ArchivedDayFigures, verdict: Verdict): string {
  const { events, eventBytes, recordBytes, cpuUs, seconds, serviceBytes, duckdbBytes } = figures;
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
  const lines = [
    `${events} events of one day, each with a record: ${seconds.toFixed(0)} s, ${cpuUs.toFixed(0)} us of CPU an event`,
    `disk per event: ${eventBytes.toFixed(1)} bytes, ${(eventBytes + recordBytes).toFixed(0)} with its record`,
    `memory at most: service ${megabytes(serviceBytes)}, DuckDB ${megabytes(duckdbBytes)}`,
    ...alignColumns([toVerdictRow(verdict)]),
  ];
  return `${lines.join("\n")}\n`;
}
