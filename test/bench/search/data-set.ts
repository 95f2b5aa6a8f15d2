import { createWriteStream, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { listTree, readCpuMs } from "../process-tree.ts";
import { addRecords } from "./add-records.ts";
import { type ArchiveFiles, archiveDays, openFiles } from "./archive-days.ts";
import { ASKED_ZONE, createDayRenderer, planDays } from "./day-events.ts";
import { type Duck, openDuck } from "./duck.ts";
import { type ArchivePostgres, openPostgres } from "./postgres.ts";
import { createWorld } from "./world.ts";

export const DAYS = 90;
const ZONES = 4;
const SEED = "bench";
/** Raised when the generator changes: kept data of another one is made anew. */
const GENERATOR = 5;
const DAYS_AT_ONCE = 3;
/** What time it is for the questions; like a real one it lies on no boundary. */
export const SEARCH_NOW = Date.UTC(2026, 10, 20, 12, 34, 56, 789);

/** The day whose roll-ups are checked, and whose events have records. */
const CHECKED_DAY = "2026-11-12";

export interface DataSet {
  readonly events: number;
  readonly folder: string;
  readonly postgres: ArchivePostgres;
  readonly duck: Duck;
  readonly archive: ArchiveFiles;
  /** Stops both, and removes the folder unless it is to be kept. */
  close(): Promise<void>;
}

export interface DataSetOptions {
  readonly events: number;
  readonly folder: string;
  readonly isKept: boolean;
  readonly onProgress: (done: number, what: string) => void;
}

/** Ninety days of events in Postgres and in DuckDB, made unless the folder has them from an earlier run. */
export async function openDataSet({ events, folder, isKept, onProgress }: DataSetOptions): Promise<DataSet> {
  const manifest = path.join(folder, "data-set.json");
  const wanted = JSON.stringify({ events, seed: SEED, generator: GENERATOR, now: SEARCH_NOW });
  const isThere = existsSync(manifest) && readFileSync(manifest, "utf8") === wanted;
  if (!isThere) rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const postgres = await openPostgres(path.join(folder, "postgres"));
  const duck = await openDuck(path.join(folder, "events.duckdb"));
  const archive = openFiles(folder);
  const close = async () => {
    duck.close();
    await archive.duckdb.close();
    await postgres.stop();
    if (!isKept) rmSync(folder, { recursive: true, force: true });
  };
  try {
    if (!isThere) {
      await load({ events, folder, postgres, duck, onProgress });
      await addRecords(postgres.database, ASKED_ZONE, CHECKED_DAY);
      await postgres.finish(CHECKED_DAY);
      writeFileSync(manifest, wanted);
    }
    onProgress(0, "archiving days");
    let written = 0;
    const onArchived = () => onProgress(++written / (DAYS * ZONES), "archiving days");
    const cpuBefore = readCpuMs(listTree());
    const archived = await archiveDays(postgres.database, archive, SEARCH_NOW, onArchived);
    const figures = path.join(folder, "archiving.json");
    const cpuMs = readCpuMs(listTree()) - cpuBefore;
    if (archived > 0) writeFileSync(figures, JSON.stringify({ archived, cpuMs }));
  } catch (thrown) {
    await close();
    throw thrown;
  }
  return { events, folder, postgres, duck, archive, close };
}

async function load(
  target: Omit<DataSet, "close" | "archive"> & Pick<DataSetOptions, "onProgress">,
): Promise<void> {
  const { events, folder, postgres, duck, onProgress } = target;
  const render = createDayRenderer(SEED, createWorld(SEED));
  const plans = planDays(SEARCH_NOW - DAYS * 86_400_000, SEARCH_NOW, events);
  const pending = new Set<Promise<void>>();
  let loadedByDuck = Promise.resolve();
  let loaded = 0;
  for (const plan of plans) {
    const file = path.join(folder, `${plan.day}.csv`);
    await pipeline(Readable.from(render(plan)), createWriteStream(file));
    loadedByDuck = loadedByDuck.then(() => duck.addDay(file));
    const day = Promise.all([loadedByDuck, postgres.addDay(plan.day, file, SEARCH_NOW)]).then(() => {
      rmSync(file);
      pending.delete(day);
      onProgress((loaded += plan.events) / events, plan.day);
    });
    pending.add(day);
    if (pending.size >= DAYS_AT_ONCE) await Promise.race(pending);
  }
  await Promise.all(pending);
  await duck.finish();
}
