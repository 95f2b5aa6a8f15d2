/** Brings a file of the archive to this machine, and notes files that are damaged. */
import path from "node:path";
import { and, isNotNull, isNull, sql } from "drizzle-orm";
import { ServiceError } from "#lib/errors.ts";
import { type ArchiveStorage, StorageError } from "#model/archive-storage.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive.ts";
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

const f = archiveFiles;

export interface DamagedFile {
  readonly zoneId: number;
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
  readonly path: string;
  readonly damage: string;
  /** Epoch ms. */
  readonly damagedAt: number;
}

/** Notes that a file is missing or damaged, for the alert; null notes that it is not. */
export async function noteDamage(
  db: Queryable,
  { path, sha256 }: Pick<ArchiveFile, "path" | "sha256">,
  damage: string | null,
): Promise<void> {
  await db
    .update(f)
    .set({ damage, damagedAt: damage === null ? null : sql`coalesce(${f.damagedAt}, now())` })
    .where(sql`${f.path} = ${path} and ${f.sha256} = ${sha256} and ${f.damage} is distinct from ${damage}`);
}

/** Returns the valid files that are missing or damaged, the longest known first. */
export function readDamagedFiles(db: Queryable): Promise<DamagedFile[]> {
  return db
    .select({
      zoneId: f.zoneId,
      day: f.day,
      path: f.path,
      damage: sql<string>`${f.damage}`,
      damagedAt: sql<number>`floor(${epochMs(f.damagedAt)})`,
    })
    .from(f)
    .where(and(isNotNull(f.damagedAt), isNull(f.retiredAt)))
    .orderBy(f.damagedAt, f.zoneId, f.day);
}

/** Thrown when a file of the archive is missing or is not what the manifest says. */
export class ArchiveDamagedError extends ServiceError {
  override readonly name = "ArchiveDamagedError";
  readonly code = "ARCHIVE_DAMAGED";
  readonly disposition = "give-up";
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
  readonly file: ArchiveFile;
  readonly damage: string;

  constructor(file: ArchiveFile, damage: string) {
    super(`the archive file ${file.path} of ${file.day} ${damage}`);
    this.day = file.day;
    this.file = file;
    this.damage = damage;
  }
}
