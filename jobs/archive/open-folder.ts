import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { countValidFiles } from "../../db/archive/archive-files.ts";
import type { Queryable } from "../../db/client.ts";
import { readServerSecret } from "../../db/service/server-secrets.ts";
import { type Disposition, ServiceError } from "../../src/lib/errors.ts";
import { replaceFile } from "../../src/lib/publish-file.ts";

/** Names the database that a folder belongs to, so that no database writes or deletes in the folder of another one. */
const MARKER = "archive.json";

/** Thrown for an archive folder that is not this database's. Its message is written for the operator. */
class ArchiveFolderError extends ServiceError {
  override readonly name = "ArchiveFolderError";
  readonly code = "ARCHIVE_FOLDER";
  readonly disposition: Disposition = "give-up";
}

/**
 * Makes sure that the folder is the archive of this database. An empty folder becomes it, unless the manifest already names
 * files, which must then be somewhere else.
 * @throws {ArchiveFolderError}
 */
export async function openArchiveFolder(db: Queryable, folder: string): Promise<void> {
  const id = (await readServerSecret(db, "archive folder", randomBytes(16))).toString("hex");
  const found = await readMarker(folder);
  if (found === id) return;
  if (found !== null)
    throw new ArchiveFolderError(
      `the archive folder ${folder} belongs to another Longwatch database (${MARKER}); set LONGWATCH_ARCHIVE_DIR to a folder of its own`,
    );
  await mkdir(folder, { recursive: true });
  const names = await readdir(folder);
  if (names.some((name) => name === "events" || name === "records"))
    throw new ArchiveFolderError(
      `the archive folder ${folder} holds archive files but no ${MARKER}; copy the whole folder, or set LONGWATCH_ARCHIVE_DIR to an empty folder`,
    );
  const files = await countValidFiles(db);
  if (files > 0)
    throw new ArchiveFolderError(
      `the archive folder ${folder} is empty, but the manifest names ${files} files; set LONGWATCH_ARCHIVE_DIR to the folder that holds them, or copy them back`,
    );
  await replaceFile(path.join(folder, MARKER), `${JSON.stringify({ format: 1, id })}\n`);
}

async function readMarker(folder: string): Promise<string | null> {
  const text = await readFile(path.join(folder, MARKER), "utf8").catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === "ENOENT" || thrown.code === "ENOTDIR") return null;
    throw thrown;
  });
  if (text === null) return null;
  return /"id":\s*"([0-9a-f]{32})"/.exec(text)?.[1] ?? "";
}
