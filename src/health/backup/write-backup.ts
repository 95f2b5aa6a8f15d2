import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream";
import { createZstdCompress } from "node:zlib";
import { readStatement, statementPath, writeStatement } from "#archive/rules/files/day-statement.ts";
import { readVersion } from "#config/read-version.ts";
import { listValidFiles, type ManifestRow } from "#db/archive/archive-files.ts";
import type { Database } from "#db/client.ts";
import { type DescribedStore, inSnapshot, readRows } from "#db/health/tables.ts";
import { readKeyId } from "#db/people/pseudonymise.ts";
import { holdPatiently } from "#db/postgres/hold-lease.ts";
import type { Transaction } from "#db/postgres/transaction.ts";
import { ARCHIVE_LEASE } from "#jobs/archive/archive-store.ts";
import { describeDisk, readDiskSpace } from "#lib/disk.ts";
import { publishFile } from "#lib/files.ts";
import { createTarWriter } from "#lib/tar.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import {
  ARCHIVE_FOLDER,
  BACKUP_FORMAT,
  BackupError,
  type BackupManifest,
  createStepProgress,
  LEFT_OUT,
  MANIFEST,
  MANIFEST_HASH,
  type StepProgress,
} from "./open-backup.ts";

/** An archive day that is being written takes minutes. */
const WAIT_FOR_ARCHIVE_MS = 10 * 60_000;

export interface BackupOptions {
  readonly database: Database;
  /** The archive's folder. Files that are only in a bucket are named in the backup and not copied. */
  readonly folder: Pick<ArchiveStorage, "folder" | "readText">;
  readonly withArchive: boolean;
  /** Absolute; must not exist. */
  readonly file: string;
  /** Called with a share from 0 to 1 and with what is being copied. */
  readonly onProgress: (share: number, label: string) => void;
  readonly signal: AbortSignal;
}

type Tar = ReturnType<typeof createTarWriter>;

interface Writing {
  readonly tar: Tar;
  readonly members: BackupManifest["members"];
  readonly progress: StepProgress;
  readonly signal: AbortSignal;
}

/**
 * Writes one snapshot of the database and the archive's files into a new file, which gets its name when it is complete and
 * on the disk. Only its user may read the file.
 * @throws {BackupError} if a file of the archive is missing or damaged.
 */
export async function writeBackup(
  options: BackupOptions,
): Promise<{ manifest: BackupManifest; bytes: number }> {
  const temporary = `${options.file}.${randomBytes(4).toString("hex")}.tmp`;
  const handle = await open(temporary, "wx", 0o600);
  try {
    const manifest = await inSnapshot(options.database, (transaction, store) =>
      writeMembers(options, handle, transaction, store),
    ).finally(() => options.signal.throwIfAborted());
    const { size: bytes } = await handle.stat();
    await handle.close();
    await publishFile(temporary, options.file);
    return { manifest, bytes };
  } catch (thrown) {
    await handle.close().catch(() => undefined);
    const space = readDiskSpace(path.dirname(options.file));
    await rm(temporary, { force: true });
    if ((thrown as NodeJS.ErrnoException).code !== "ENOSPC") throw thrown;
    const disk = space === null ? `the disk of ${options.file} is full` : describeDisk(space);
    throw new BackupError(`the backup does not fit: ${disk}. Free space, or write to another disk`);
  }
}

async function writeMembers(
  { database, folder, withArchive, onProgress, signal }: BackupOptions,
  handle: FileHandle,
  transaction: Transaction,
  store: DescribedStore,
): Promise<BackupManifest> {
  const { tx } = transaction;
  const tables = store.tables.filter(({ name }) => !LEFT_OUT.includes(name));
  const valid = await listValidFiles(tx);
  const isCopied = (file: ManifestRow) => withArchive && file.uploadedAt === null && file.damagedAt === null;
  const copied = valid.filter(isCopied);
  const total = [...copied, ...tables.flatMap(({ parts }) => parts)].reduce(
    (sum, { bytes }) => sum + bytes,
    0,
  );
  const writing: Writing = {
    tar: createTarWriter(handle, store.takenAt),
    members: [],
    progress: createStepProgress(total, onProgress),
    signal,
  };
  // A replaced file is deleted an hour later. While the lease is taken, nothing is deleted.
  const inside =
    copied.length === 0
      ? []
      : await holdPatiently(
          database,
          {
            name: ARCHIVE_LEASE.name,
            waitMs: WAIT_FOR_ARCHIVE_MS,
            onWait: () => onProgress(0, "waiting until the archive is not being written"),
          },
          ({ lost }) => copyArchive({ ...writing, signal: AbortSignal.any([signal, lost]) }, folder, copied),
          signal,
        );
  const manifest: BackupManifest = {
    format: BACKUP_FORMAT,
    version: readVersion(),
    takenAt: new Date(store.takenAt).toISOString(),
    postgres: store.postgres,
    migration: store.migration,
    pseudonymKeyId: await readKeyId(tx),
    leftOut: LEFT_OUT,
    tables: await copyTables(writing, transaction, tables),
    sequences: store.sequences.filter(({ table }) => !LEFT_OUT.includes(table)),
    archive: { inside, outside: valid.filter((file) => !isCopied(file)).map(toNamed) },
    members: writing.members,
  };
  const { sha256 } = await writing.tar.add(MANIFEST, [Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`)]);
  await writing.tar.add(MANIFEST_HASH, [Buffer.from(`${sha256}  ${MANIFEST}\n`)]);
  await writing.tar.finish();
  return manifest;
}

async function copyTables(
  writing: Writing,
  transaction: Transaction,
  tables: DescribedStore["tables"],
): Promise<BackupManifest["tables"]> {
  const written: BackupManifest["tables"] = [];
  for (const { name, columns, parts } of tables) {
    const listed: BackupManifest["tables"][number]["parts"] = [];
    for (const { relation, day, bytes } of parts) {
      writing.progress.begin(relation, bytes);
      let rows = 0;
      const member = day === null ? `tables/${name}.copy.zst` : `tables/${name}/${day}.copy.zst`;
      const content = readRows(transaction, relation, columns, (count) => (rows = count));
      await add(writing, member, compress(follow(content, writing)));
      listed.push({ member, rows, day });
    }
    written.push({ name, columns: [...columns], parts: listed });
  }
  return written;
}

async function copyArchive(
  writing: Writing,
  folder: BackupOptions["folder"],
  files: readonly ManifestRow[],
): Promise<BackupManifest["archive"]["inside"]> {
  const inside: BackupManifest["archive"]["inside"] = [];
  const days = Map.groupBy(files, ({ zoneId, day }) => statementPath(zoneId, day));
  for (const [name, ofDay] of days) {
    for (const file of ofDay) {
      writing.progress.begin(`archive ${file.day}`, file.bytes);
      const local = path.join(folder.folder, ...file.path.split("/"));
      const content = follow(createReadStream(local, { highWaterMark: 1_048_576 }), writing);
      const copied = await add(writing, `${ARCHIVE_FOLDER}/${file.path}`, content).catch(
        (thrown: unknown) => {
          writing.signal.throwIfAborted();
          const { code, path: at } = thrown as NodeJS.ErrnoException;
          if (at !== local) throw thrown;
          throw damaged(
            file.path,
            folder.folder,
            code === "ENOENT" ? "is not there" : `cannot be read: ${code}`,
          );
        },
      );
      if (copied.sha256 !== file.sha256)
        throw damaged(file.path, folder.folder, `has the hash ${copied.sha256} instead of ${file.sha256}`);
      inside.push(toNamed(file));
    }
    const statement = readStatement(await folder.readText(name));
    const stated = statement?.files.filter(({ sha256 }) => ofDay.some((file) => file.sha256 === sha256));
    if (statement === null || stated?.length !== ofDay.length)
      throw new BackupError(
        `${name} in ${folder.folder} does not name the files of the day: the day was changed meanwhile. Run the backup again. If it fails again, run longwatch archive verify`,
      );
    const text = Buffer.from(writeStatement({ ...statement, files: stated }));
    inside.push({ path: name, ...(await add(writing, `${ARCHIVE_FOLDER}/${name}`, [text])) });
  }
  return inside;
}

function damaged(name: string, folder: string, problem: string): BackupError {
  return new BackupError(
    `the archive's file ${name} in ${folder} ${problem}: set LONGWATCH_ARCHIVE_DIR to the archive's folder; if it is that folder, run longwatch archive verify`,
  );
}

async function add(
  { tar, members }: Writing,
  name: string,
  content: AsyncIterable<Buffer> | Iterable<Buffer>,
) {
  const hash = await tar.add(name, content);
  members.push({ name, bytes: hash.bytes, sha256: hash.sha256 });
  return hash;
}

function compress(content: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  // The stream rejects for its reader, and the callback would report the error again.
  return pipeline(content, createZstdCompress(), () => undefined);
}

async function* follow(content: AsyncIterable<Buffer>, { progress, signal }: Writing) {
  for await (const chunk of content) {
    signal.throwIfAborted();
    yield chunk;
    progress.advance(chunk.length);
  }
}

function toNamed({ path: name, bytes, sha256 }: ManifestRow): BackupManifest["archive"]["inside"][number] {
  return { path: name, bytes, sha256 };
}
