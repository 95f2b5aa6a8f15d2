import { randomUUID } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream";
import { createZstdDecompress } from "node:zlib";
import type { Database, Queryable } from "#db/client.ts";
import { type LoadRows, loadStore, readWithdrawals, type Withdrawals } from "#db/health/load-tables.ts";
import { type ListedApiKey, listApiKeys } from "#db/people/api-keys.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { claimStorage } from "#jobs/archive/archive-store.ts";
import { type ArchiveStorage, TEMPORARY_FOLDER } from "#model/archive-storage.ts";
import {
  ARCHIVE_FOLDER,
  BackupError,
  type BackupManifest,
  countArchiveFiles,
  countRows,
  createStepProgress,
  type OpenedBackup,
} from "./open-backup.ts";

export interface RestoreOptions {
  /** Without tables. */
  readonly database: Database;
  readonly storage: ArchiveStorage;
  /** The archive's folder. A file that is in no bucket yet belongs there. */
  readonly folder: ArchiveStorage;
  readonly actor: string;
  /** The changes in the database that the backup was made of; null if it cannot be asked. */
  readonly since: Withdrawals | null;
  /** Called with a share from 0 to 1 and with what is being copied. */
  readonly onProgress: (share: number, label: string) => void;
  readonly signal: AbortSignal;
}

export interface RestoredBackup {
  readonly rows: number;
  readonly archiveFiles: number;
  /** Files of the archive that must be in the folder and are neither there nor in the backup. */
  readonly missingFiles: readonly string[];
  /** Tables of the backup that are not Longwatch's. */
  readonly unknownTables: readonly string[];
  readonly unknownMembers: OpenedBackup["unknownMembers"];
  /** The keys that are valid in the restored database. */
  readonly validKeys: readonly ListedApiKey[];
  /** The changes after the backup that must be made again; null if they are not known. */
  readonly since: Withdrawals | null;
}

/**
 * Restores a backup into a database without tables. All rows are committed at once, after the archive's files are in their
 * places: a database whose restore was interrupted has no tables, and the same backup can be restored again.
 */
export async function restoreBackup(
  { manifest, unknownMembers, read }: OpenedBackup,
  options: RestoreOptions,
): Promise<RestoredBackup> {
  const { database, storage, actor, since, onProgress, signal } = options;
  const sizes = new Map(manifest.members.map(({ name, bytes }) => [name, bytes]));
  const progress = createStepProgress(
    manifest.members.reduce((sum, { bytes }) => sum + bytes, 0),
    onProgress,
  );
  const readMember: ReadMember = async function* (member, label) {
    progress.begin(label, sizes.get(member) ?? 0);
    for await (const chunk of read(member)) {
      signal.throwIfAborted();
      yield chunk;
      progress.advance(chunk.length);
    }
  };
  const unknownTables: string[] = [];
  const validKeys = await loadStore(
    database,
    manifest,
    async (isKnown, load) => {
      for (const table of manifest.tables)
        if (isKnown(table.name)) await loadTable(table, load, readMember);
        else unknownTables.push(table.name);
    },
    async (tx) => {
      if (manifest.archive.inside.length > 0) await placeArchive(manifest, tx, options, readMember);
      const details = { version: manifest.version, takenAt: manifest.takenAt };
      await writeAuditEntry(tx, { actor, action: "backup.restored", subject: "database", details });
      signal.throwIfAborted();
      return listApiKeys(tx, { beforeId: null, withDead: false, limit: MOST_KEYS });
    },
  );
  // A bucket that cannot be read has none of the files, as far as anybody knows.
  const present = new Set((await storage.list().catch(() => [])).map((file) => file.path));
  return {
    rows: countRows(manifest),
    archiveFiles: countArchiveFiles(manifest),
    missingFiles: manifest.archive.outside.flatMap((file) => (present.has(file.path) ? [] : [file.path])),
    unknownTables,
    unknownMembers,
    validKeys,
    since: since === null ? null : findNew(since, validKeys, await readWithdrawals(database.db)),
  };
}

const MOST_KEYS = 1_000;

type ReadMember = (member: string, label: string) => AsyncIterable<Buffer>;

async function loadTable(
  table: BackupManifest["tables"][number],
  load: LoadRows,
  readMember: ReadMember,
): Promise<void> {
  for (const { member, rows, day } of table.parts) {
    const label = `${table.name}${day === null ? "" : ` ${day}`}`;
    // The stream rejects for its reader, and the callback would report the error again.
    const content = pipeline(readMember(member, label), createZstdDecompress(), () => undefined);
    const loaded = await load(table, day, content);
    if (loaded !== rows)
      throw new BackupError(
        `the member ${member} has ${loaded} rows, and the manifest says ${rows}: use another backup`,
      );
  }
}

async function placeArchive(
  { archive }: BackupManifest,
  tx: Queryable,
  { storage, folder }: RestoreOptions,
  readMember: ReadMember,
): Promise<void> {
  // The marker comes first. Files without a marker could be those of another database.
  if (!storage.isBucket) await claimStorage(tx, storage, { isRestored: true });
  const place = path.join(folder.folder, TEMPORARY_FOLDER);
  await mkdir(place, { recursive: true, mode: 0o700 });
  for (const file of archive.inside) {
    // An interrupted restore may have placed it.
    if ((await folder.check(file)) === null) continue;
    const temporary = path.join(place, randomUUID());
    try {
      const content = readMember(`${ARCHIVE_FOLDER}/${file.path}`, `archive ${file.path}`);
      await writeFile(temporary, content, { flag: "wx", mode: 0o600 });
      await folder.put(temporary, file.path, file);
    } finally {
      await rm(temporary, { force: true });
    }
  }
}

/** Returns the keys that are valid only in the restored database, and the erasures that only the old one has. */
function findNew(old: Withdrawals, validKeys: readonly ListedApiKey[], restored: Withdrawals): Withdrawals {
  const valid = new Set(validKeys.map(({ keyId }) => keyId));
  const erased = new Set(restored.erasures.map(({ requestedAt }) => requestedAt));
  return {
    revoked: old.revoked.filter(({ keyId }) => valid.has(keyId)),
    erasures: old.erasures.filter(({ requestedAt }) => !erased.has(requestedAt)),
  };
}
