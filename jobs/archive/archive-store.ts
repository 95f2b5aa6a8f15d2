import type { Duckdb } from "#db/duckdb/duckdb.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";

/** Whoever writes or deletes in the archive folder holds this lease. */
export const ARCHIVE_LEASE = { name: "archive", ttlMs: 60_000 };

/** The parts with which the archive is written. */
export interface ArchiveStore {
  readonly storage: ArchiveStorage;
  readonly duckdb: Duckdb;
}
