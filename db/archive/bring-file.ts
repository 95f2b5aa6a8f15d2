import path from "node:path";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import { StorageError } from "#model/storage-error.ts";
import type { Queryable } from "../client.ts";
import { ArchiveDamagedError } from "./archive-damaged-error.ts";
import { findReplacement } from "./archive-files.ts";
import type { ArchiveFile } from "./archived-days.ts";

/** Returns the local path of a file of the archive. The file is there once `storage.bring` has said so. */
export function locateFile({ folder }: ArchiveStorage, file: Pick<ArchiveFile, "path">): string {
  return path.join(folder, ...file.path.split("/"));
}

/**
 * Makes a file of the archive readable, compared with its hash, and returns its local path.
 * @throws {ArchiveDamagedError} if the file is missing or damaged.
 * @throws {StorageError} if the storage cannot be used now.
 */
export async function bringFile(
  storage: ArchiveStorage,
  file: ArchiveFile,
  signal?: AbortSignal,
): Promise<string> {
  const wrong = await storage.bring(file, signal).catch((thrown: unknown) => {
    if (!(thrown instanceof StorageError)) throw thrown;
    const { message, code, day } = thrown;
    throw new StorageError(`${message}; needed for ${file.day}`, {
      code,
      day: day ?? file.day,
      cause: thrown,
    });
  });
  if (wrong !== null) throw new ArchiveDamagedError(file, wrong);
  return locateFile(storage, file);
}

/** Does the same. If the file was replaced since the manifest was read, returns the path of the new file. */
export async function bringCurrent(
  { db, storage }: { readonly db: Queryable; readonly storage: ArchiveStorage },
  file: ArchiveFile,
  signal?: AbortSignal,
): Promise<string> {
  try {
    return await bringFile(storage, file, signal);
  } catch (thrown) {
    const instead = thrown instanceof ArchiveDamagedError ? await findReplacement(db, file) : null;
    if (instead === null) throw thrown;
    return bringCurrent({ db, storage }, instead, signal);
  }
}
