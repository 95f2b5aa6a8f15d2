/** Opens the archive: its storage, and the files that are read from it. */

import { mkdir } from "node:fs/promises";
import path from "node:path";
import type { Config } from "#config/config.ts";
import { findReplacement, listNamed, listNotUploaded } from "#db/archive/archive-files.ts";
import { type ArchiveReader, createArchiveReader, createSearchDuckdb } from "#db/archive/archive-reader.ts";
import type { ArchiveFile } from "#db/archive/archived-days.ts";
import { noteDamage } from "#db/archive/bring-file.ts";
import { removeStaleHours } from "#db/archive/kept-hours.ts";
import type { Database, Queryable } from "#db/client.ts";
import { createDuckdb } from "#db/duckdb/duckdb.ts";
import { type ArchiveStore, claimStorage, temporaryFolder } from "#jobs/archive/archive-store.ts";
import type { JobContext } from "#jobs/context.ts";
import { messageOf, toError, UsageError } from "#lib/errors.ts";
import { makeTouchedFolder, removeOld, UNTOUCHED_MS } from "#lib/files.ts";
import type { StopStack } from "#lib/process.ts";
import { HOUR_MS } from "#lib/units.ts";
import { type ArchiveStorage, FORGET_EVERY_MS, SPILL_FOLDER } from "#model/archive-storage.ts";
import { openBucket } from "#store/bucket/bucket.ts";
import { createBucketStorage } from "#store/bucket/bucket-storage.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";

/** DuckDB's own limit. It does not cover the buffers of compression and of the CSV file. */
const MEMORY_BYTES = 160_000_000;
const RESIDENT_BYTES = 400_000_000;

/** Returns the archive as its writers need it, with a DuckDB that starts on first use and can reach only the folder. */
export function createArchiveStore(storage: ArchiveStorage): ArchiveStore {
  const { folder } = storage;
  return {
    storage,
    duckdb: createDuckdb({
      folders: [folder],
      spillInto: path.join(temporaryFolder(folder), SPILL_FOLDER),
      memoryBytes: MEMORY_BYTES,
      residentBytes: RESIDENT_BYTES,
    }),
  };
}

export function openArchiveStore(storage: ArchiveStorage, stack: StopStack): ArchiveStore {
  const store = createArchiveStore(storage);
  stack.defer("archive writer", () => store.duckdb.close());
  return store;
}

/** Returns the archive's folder, or its bucket with the folder as cache. It does not connect yet. */
export function createStorage({ folder, bucket }: Config["archive"], db: Queryable): ArchiveStorage {
  if (bucket === null) return createFolderStorage(folder);
  return createBucketStorage({
    bucket: openBucket(bucket),
    folder,
    cacheBytes: bucket.cacheBytes,
    listNotUploaded: async () => new Set((await listNotUploaded(db)).map(({ path }) => path)),
  });
}

interface BucketParts extends Pick<JobContext, "database" | "log"> {
  readonly storage: ArchiveStorage;
}

/**
 * Logs at the start why the bucket cannot be used. The service then runs without it, and archive days wait in Postgres.
 * Every five minutes removes from this process's cache the files that another replica has erased or that have expired.
 */
export function watchBucket({ database, storage, log }: BucketParts, stack: StopStack): void {
  if (!storage.isBucket) return;
  claimStorage(database.db, storage).catch((err: unknown) =>
    log.error({ err, effect: "days stay in Postgres" }, "archive bucket not usable"),
  );
  const clean = () =>
    Promise.all([
      storage.forget((paths) => listNamed(database.db, paths)),
      removeStaleHours(database.db, storage.folder),
    ]).catch((err: unknown) => log.warn({ err }, "archive cache not cleaned"));
  const timer = setInterval(() => void clean(), FORGET_EVERY_MS);
  stack.defer("archive cache", async () => clearInterval(timer));
  void clean();
}

interface ArchiveFilesParts extends Pick<JobContext, "log"> {
  /** The database in which damaged files are recorded for the alert. */
  readonly database: Database;
  readonly config: Pick<Config, "http" | "dataDir">;
  readonly storage: ArchiveStorage;
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
  return openReader(
    { storage, log, database },
    { duckdb, inPlaces, scratch, timeoutMs: config.http.queryTimeoutMs },
  );
}

/** Returns a reader of archive days that notes damaged files for the alert. */
export function openReader(
  { database, storage, log }: Omit<ArchiveFilesParts, "config">,
  options: Pick<Parameters<typeof createArchiveReader>[0], "duckdb" | "inPlaces" | "scratch" | "timeoutMs">,
): ArchiveReader {
  const note = (file: ArchiveFile, damage: string | null) => {
    noteDamage(database.db, file, damage).catch((err: unknown) =>
      log.warn({ err }, "archive damage not noted"),
    );
  };
  return createArchiveReader({
    ...options,
    storage,
    onDamaged: (error) => {
      log.error({ err: error }, "archive file damaged");
      note(error.file, error.damage);
    },
    onWhole: (file) => note(file, null),
    findReplacement: (file) => findReplacement(database.db, file),
    onNotKept: (err) => log.warn({ err, effect: "searches copy open days each time" }, "open days not kept"),
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
