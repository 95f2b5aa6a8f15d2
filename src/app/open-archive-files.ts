import { mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import { type ArchiveReader, createArchiveReader } from "../../db/archive/archive-reader.ts";
import type { ArchiveFile } from "../../db/archive/archived-days.ts";
import { noteDamage } from "../../db/archive/damaged-files.ts";
import { createSearchDuckdb } from "../../db/archive/search-duckdb.ts";
import type { Database } from "../../db/client.ts";
import type { Config } from "../config/config.ts";
import { toError, UsageError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { messageOf } from "../lib/message-of.ts";
import type { StopStack } from "../lib/stop-stack.ts";
import { DAY_MS } from "../lib/units.ts";

export interface ArchiveFilesParts {
  /** Where damaged files are noted, for the alert. */
  readonly database: Database;
  readonly config: Pick<Config, "http" | "dataDir" | "archive">;
  readonly log: Log;
}

/** Opens the files of archive days for searches. DuckDB's process starts with the first search. */
export async function openArchiveFiles(
  { config, log, database }: ArchiveFilesParts,
  stack: StopStack,
): Promise<ArchiveReader> {
  const { folder } = config.archive;
  await makeFolder(folder);
  const scratch = await openScratch(path.join(config.dataDir, "scratch"));
  const duckdb = createSearchDuckdb(folder, scratch);
  stack.defer("archive files", async () => {
    await duckdb.close();
    await rm(scratch, { recursive: true, force: true });
  });
  const note = (file: ArchiveFile, damage: string | null) => {
    noteDamage(database.db, file, damage).catch((err: unknown) =>
      log.warn({ err }, "archive damage not noted"),
    );
  };
  return createArchiveReader({
    duckdb,
    folder,
    scratch,
    timeoutMs: config.http.queryTimeoutMs,
    onDamaged: (error) => {
      log.error({ err: error }, "archive file damaged");
      note(error.file, error.damage);
    },
    onWhole: (file) => note(file, null),
  });
}

/** @throws {UsageError} if the folder cannot be made. */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
  } catch (thrown) {
    const rule = "cannot be made; set LONGWATCH_ARCHIVE_DIR to a folder that Longwatch may write";
    throw new UsageError([`the archive folder ${folder} ${rule} (${messageOf(toError(thrown))})`]);
  }
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
