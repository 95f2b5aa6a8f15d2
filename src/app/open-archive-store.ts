import path from "node:path";
import { openBucket } from "#adapters/storage/bucket.ts";
import { createBucketStorage } from "#adapters/storage/bucket-storage.ts";
import { createFolderStorage } from "#adapters/storage/folder-storage.ts";
import type { Config } from "#config/config.ts";
import { listNamed, listNotUploaded } from "#db/archive/archive-files.ts";
import type { Database, Queryable } from "#db/client.ts";
import { createDuckdb } from "#db/duckdb/duckdb.ts";
import type { ArchiveStore } from "#jobs/archive/archive-store.ts";
import { claimStorage } from "#jobs/archive/claim-storage.ts";
import { temporaryFolder } from "#jobs/archive/work-folder.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/stop-stack.ts";
import { type ArchiveStorage, FORGET_EVERY_MS, SPILL_FOLDER } from "#model/archive-storage.ts";

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

interface BucketParts {
  readonly database: Database;
  readonly storage: ArchiveStorage;
  readonly log: Log;
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
    storage
      .forget((paths) => listNamed(database.db, paths))
      .catch((err: unknown) => log.warn({ err }, "archive cache not cleaned"));
  const timer = setInterval(() => void clean(), FORGET_EVERY_MS);
  stack.defer("archive cache", async () => clearInterval(timer));
  void clean();
}
