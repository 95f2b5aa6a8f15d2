/** The storage of the archive, and the folder in which files are made. */

import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import { countValidFiles } from "#db/archive/archive-files.ts";
import type { ZoneDay } from "#db/archive/day-source.ts";
import type { Queryable } from "#db/client.ts";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { readServerSecret } from "#db/health/server-facts.ts";
import { type Disposition, ServiceError } from "#lib/errors.ts";
import { type ArchiveStorage, TEMPORARY_FOLDER } from "#model/archive-storage.ts";

/** Whoever writes or deletes in the archive folder holds this lease. */
export const ARCHIVE_LEASE = { name: "archive", ttlMs: 60_000 };

/** The parts with which the archive is written. */
export interface ArchiveStore {
  readonly storage: ArchiveStorage;
  readonly duckdb: Duckdb;
}

/** Names the database that the files belong to, so that no database writes or deletes among the files of another one. */
const MARKER = "archive.json";

/** Thrown for a folder or a bucket that is not this database's. Its message is written for the operator. */
class ArchiveStorageError extends ServiceError {
  override readonly name = "ArchiveStorageError";
  readonly code = "ARCHIVE_STORAGE";
  readonly disposition: Disposition = "give-up";
}

/**
 * Makes sure that the storage is the archive of this database. An empty one becomes it, unless the manifest already names
 * files, which must then be somewhere else. `isRestored`: the caller is about to put these files there.
 * @throws {ArchiveStorageError}
 */
export async function claimStorage(
  db: Queryable,
  storage: ArchiveStorage,
  { isRestored = false } = {},
): Promise<void> {
  const { place } = storage;
  const variable = storage.isBucket ? "LONGWATCH_ARCHIVE_URL" : "LONGWATCH_ARCHIVE_DIR";
  const id = (await readServerSecret(db, "archive folder", randomBytes(16))).toString("hex");
  const marker = await storage.readText(MARKER);
  if (marker === null) {
    if ((await storage.list()).length > 0)
      throw new ArchiveStorageError(
        `the archive ${place} holds files but no ${MARKER}; copy the whole archive, or set ${variable} to an empty place`,
      );
    const files = await countValidFiles(db, storage.isBucket ? "uploaded" : "all");
    if (files > 0 && !isRestored)
      throw new ArchiveStorageError(
        `the archive ${place} is empty, but the manifest names ${files} files; set ${variable} to the place that holds them, or copy them back`,
      );
    if (await storage.createText(MARKER, `${JSON.stringify({ format: 1, id })}\n`)) return;
  }
  const [, found] = /"id":\s*"([0-9a-f]{32})"/.exec(marker ?? (await storage.readText(MARKER)) ?? "") ?? [];
  if (found !== id)
    throw new ArchiveStorageError(
      `the archive ${place} belongs to another Longwatch database (${MARKER}); set ${variable} to a place of its own`,
    );
}

/** Returns the folder for files that are being written. Everything in it may be deleted when nothing writes. */
export function temporaryFolder(folder: string): string {
  return path.join(folder, TEMPORARY_FOLDER);
}

/** Runs `work` with a new folder for the files of one day, and removes the folder when `work` has ended. */
export async function inWorkFolder<T>(
  storage: ArchiveStorage,
  { zoneId, day }: ZoneDay,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  const temporary = temporaryFolder(storage.folder);
  await mkdir(temporary, { recursive: true });
  const folder = await mkdtemp(path.join(temporary, `${zoneId}-${day}-`));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
