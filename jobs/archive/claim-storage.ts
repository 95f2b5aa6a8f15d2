import { randomBytes } from "node:crypto";
import { countValidFiles } from "#db/archive/archive-files.ts";
import type { Queryable } from "#db/client.ts";
import { readServerSecret } from "#db/service/server-facts.ts";
import { type Disposition, ServiceError } from "#lib/errors.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";

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
