import { mkdir } from "node:fs/promises";
import path from "node:path";
import type { Config } from "#config/config.ts";
import { findReplacement } from "#db/archive/archive-files.ts";
import { type ArchiveReader, createArchiveReader, createSearchDuckdb } from "#db/archive/archive-reader.ts";
import type { ArchiveFile } from "#db/archive/archived-days.ts";
import { noteDamage } from "#db/archive/bring-file.ts";
import type { Database } from "#db/client.ts";
import { messageOf, toError, UsageError } from "#lib/errors.ts";
import { makeTouchedFolder, removeOld, UNTOUCHED_MS } from "#lib/files.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/stop-stack.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";

export interface ArchiveFilesParts {
  /** The database in which damaged files are recorded for the alert. */
  readonly database: Database;
  readonly config: Pick<Config, "http" | "dataDir">;
  readonly storage: ArchiveStorage;
  readonly log: Log;
}

/**
 * Opens the files of archive days for searches. The number of processes is the default number of concurrent long
 * searches. A process starts when it is needed and ends when it is idle.
 */
export async function openArchiveFiles(
  { config, storage, log, database }: ArchiveFilesParts,
  stack: StopStack,
): Promise<ArchiveReader> {
  await makeFolder(storage.folder);
  const parent = path.join(config.dataDir, "scratch");
  const made = await makeTouchedFolder(parent, "search-");
  const scratch = made.folder;
  // Folders of processes that were killed.
  const sweep = () => removeOld(parent, Date.now() - UNTOUCHED_MS, [path.basename(scratch)]);
  await sweep();
  const sweeping = setInterval(() => void sweep().catch(() => undefined), HOUR_MS).unref();
  const create = (isUrgent = false) => createSearchDuckdb(storage.folder, scratch, { isUrgent });
  const duckdb = create();
  const inPlaces = { quick: [create(true)], long: [duckdb, create()] };
  stack.defer("archive files", async () => {
    clearInterval(sweeping);
    await Promise.all([...inPlaces.quick, ...inPlaces.long].map((one) => one.close()));
    await made.remove();
  });
  const note = (file: ArchiveFile, damage: string | null) => {
    noteDamage(database.db, file, damage).catch((err: unknown) =>
      log.warn({ err }, "archive damage not noted"),
    );
  };
  return createArchiveReader({
    duckdb,
    inPlaces,
    storage,
    scratch,
    timeoutMs: config.http.queryTimeoutMs,
    onDamaged: (error) => {
      log.error({ err: error }, "archive file damaged");
      note(error.file, error.damage);
    },
    onWhole: (file) => note(file, null),
    findReplacement: (file) => findReplacement(database.db, file),
  });
}

/** @throws {UsageError} if the folder cannot be created */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
  } catch (thrown) {
    const rule = "cannot be made; set LONGWATCH_ARCHIVE_DIR to a folder that Longwatch may write";
    throw new UsageError([`the archive folder ${folder} ${rule} (${messageOf(toError(thrown))})`]);
  }
}
