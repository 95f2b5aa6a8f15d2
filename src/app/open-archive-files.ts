import { mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import { type ArchiveReader, createArchiveReader } from "../../db/archive/archive-reader.ts";
import { createDuckdb } from "../../db/duckdb/duckdb.ts";
import type { Config } from "../config/config.ts";
import type { Log } from "../lib/log.ts";
import type { StopStack } from "../lib/stop-stack.ts";
import { DAY_MS } from "../lib/units.ts";

export interface ArchiveFilesParts {
  readonly config: Pick<Config, "http" | "dataDir">;
  readonly log: Log;
}

/** DuckDB's own limit. What does not fit is written into the scratch folder. */
const MEMORY_BYTES = 256_000_000;
/** DuckDB exceeds its limit in some aggregates. Above this size its process is ended. */
const RESIDENT_BYTES = 1_000_000_000;

/** Opens the files of archive days for searches. DuckDB's process starts with the first search. */
export async function openArchiveFiles(
  { config, log }: ArchiveFilesParts,
  stack: StopStack,
): Promise<ArchiveReader> {
  const folder = path.join(config.dataDir, "archive");
  await mkdir(folder, { recursive: true });
  const scratch = await openScratch(path.join(config.dataDir, "scratch"));
  const duckdb = createDuckdb({
    folders: [folder, scratch],
    spillInto: scratch,
    memoryBytes: MEMORY_BYTES,
    residentBytes: RESIDENT_BYTES,
  });
  stack.defer("archive files", async () => {
    await duckdb.close();
    await rm(scratch, { recursive: true, force: true });
  });
  return createArchiveReader({
    duckdb,
    folder,
    scratch,
    timeoutMs: config.http.queryTimeoutMs,
    onDamaged: (error) => log.error({ err: error, day: error.day, path: error.path }, "archive file damaged"),
  });
}

/** Returns a new folder of this process. Folders of processes that were killed are removed after a day. */
async function openScratch(parent: string): Promise<string> {
  await mkdir(parent, { recursive: true });
  for (const name of await readdir(parent)) {
    const folder = path.join(parent, name);
    const isOld = await stat(folder).then(
      ({ mtimeMs }) => mtimeMs < Date.now() - DAY_MS,
      () => false,
    );
    if (isOld) await rm(folder, { recursive: true, force: true });
  }
  return mkdtemp(path.join(parent, "search-"));
}
