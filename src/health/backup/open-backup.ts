import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { z } from "zod";
import { readVersion } from "#config/read-version.ts";
import { BEFORE_BASELINE, listMigrations } from "#db/migrate.ts";
import { type Disposition, messageOf, ServiceError, toError } from "#lib/errors.ts";
import { listTar, TarError, type TarMember } from "#lib/tar.ts";

/** Version of the container and of the manifest. A reader refuses a later one. */
export const BACKUP_FORMAT = 1;
export const MANIFEST = "manifest.json";
/** Holds the manifest's hash in the form that `sha256sum --check` reads. */
export const MANIFEST_HASH = "manifest.json.sha256";
/** Folder of the archive's files in the backup. */
export const ARCHIVE_FOLDER = "archive";

/**
 * Tables that are not in a backup: processes that ran when it was made, and sign-ins, which could have been ended since.
 */
export const LEFT_OUT = ["replicas", "sessions", "sign_in_tokens"];

const whole = z.int().nonnegative();
const hash = z.string().regex(/^[0-9a-f]{64}$/);
const day = z.iso.date();

const Part = z.object({ member: z.string(), rows: whole, day: day.nullable() });
/** A file of the archive; `path` is relative to the archive and stays in it. */
const ArchiveFile = z.object({
  path: z
    .string()
    .regex(/^(?:events|records)\/zone=\d+\/day=\d{4}-\d\d-\d\d\/(?:[0-9a-f]{16}\.parquet|_statement\.json)$/),
  bytes: whole,
  sha256: hash,
});

/** The description of a backup. It is the last member but one: a backup without it is not complete. */
export const BackupManifest = z.object({
  format: z.literal(BACKUP_FORMAT),
  /** The version of Longwatch that made the backup. */
  version: z.string(),
  /** When the snapshot was taken, by the clock of the database. */
  takenAt: z.iso.datetime(),
  /** The server's version. */
  postgres: z.string(),
  /** Creation time of the last migration of the tables, epoch ms. */
  migration: whole,
  /** Fingerprint of the pseudonym key, which is not in the backup; null if there is none yet. */
  pseudonymKeyId: z.string().nullable(),
  leftOut: z.array(z.string()),
  /** Tables in the order in which they can be loaded. */
  tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()), parts: z.array(Part) })),
  sequences: z.array(
    z.object({ table: z.string(), column: z.string(), last: z.string(), isCalled: z.boolean() }),
  ),
  archive: z.object({
    /** Files and statements that are members of the backup, below `archive/`. */
    inside: z.array(ArchiveFile),
    /** Files that are in a bucket, damaged, or left out on request. */
    outside: z.array(ArchiveFile),
  }),
  /** Every other member with the hash of its content as it is in the backup. */
  members: z.array(z.object({ name: z.string(), bytes: whole, sha256: hash })),
});
export type BackupManifest = z.infer<typeof BackupManifest>;

/** Returns the number of rows of all tables. */
export function countRows({ tables }: Pick<BackupManifest, "tables">): number {
  return tables.flatMap(({ parts }) => parts).reduce((sum, { rows }) => sum + rows, 0);
}

/** Returns the number of files of the archive in the backup. Their days' statements are not counted. */
export function countArchiveFiles({ archive }: Pick<BackupManifest, "archive">): number {
  return archive.inside.filter(({ path }) => path.endsWith(".parquet")).length;
}

/** Thrown for a backup that cannot be made or restored. Its message is written for the operator. */
export class BackupError extends ServiceError {
  override readonly name = "BackupError";
  readonly code = "BACKUP";
  readonly disposition: Disposition = "give-up";
}

export type StepProgress = ReturnType<typeof createStepProgress>;

/**
 * Reports the progress of steps whose sizes are estimates: a step never counts for more than its size. `onProgress` gets a
 * share from 0 to 1, and is called again when the share has grown by a thousandth.
 */
export function createStepProgress(total: number, onProgress: (share: number, label: string) => void) {
  let ended = 0;
  let step = { label: "", size: 0, done: 0 };
  let shown = -1;
  const report = () => {
    const share = (ended + Math.min(step.done, step.size)) / Math.max(total, 1);
    const thousandths = Math.floor(share * 1_000);
    if (thousandths !== shown) onProgress(share, step.label);
    shown = thousandths;
  };
  return {
    begin(label: string, size: number): void {
      ended += step.size;
      step = { label, size, done: 0 };
      shown = -1;
      report();
    },
    advance(amount: number): void {
      step.done += amount;
      report();
    },
  };
}

export interface OpenedBackup {
  readonly manifest: BackupManifest;
  /** Members of the file that the manifest does not name, or that come more than once. They are never restored. */
  readonly unknownMembers: readonly string[];
  /** Yields the content of a member as it is in the file. */
  readonly read: (name: string) => AsyncIterable<Buffer>;
}

export interface CheckOptions {
  /** Called with a share from 0 to 1 and with what is being checked. */
  readonly onProgress: (share: number, label: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Opens a backup and compares every member with its hash, so that nothing is restored of a damaged one.
 * @throws {BackupError} if the file is no backup, is not complete, is damaged, or is of a newer version.
 */
export async function openBackup(file: string, { onProgress, signal }: CheckOptions): Promise<OpenedBackup> {
  const found = await listMembers(file);
  const members = new Map(found.map((member) => [member.name, member]));
  const locate = (name: string): TarMember => {
    const member = members.get(name);
    if (member === undefined) throw new BackupError(`${file}: the member ${name} is missing. ${ANOTHER}`);
    return member;
  };
  const read = (name: string): AsyncIterable<Buffer> => {
    const { offset, bytes } = locate(name);
    if (bytes === 0) return emptyContent();
    return createReadStream(file, { start: offset, end: offset + bytes - 1, highWaterMark: 1_048_576 });
  };
  if (!members.has(MANIFEST) || !members.has(MANIFEST_HASH))
    throw new BackupError(`${file} is not a complete backup: it has no ${MANIFEST}. ${ANOTHER}`);
  const manifest = await readManifest(file, read);
  const progress = createStepProgress(
    manifest.members.reduce((sum, { bytes }) => sum + bytes, 0),
    onProgress,
  );
  for (const { name, bytes, sha256 } of manifest.members) {
    progress.begin(`checking ${name}`, bytes);
    const hash = createHash("sha256");
    for await (const chunk of read(name)) {
      signal.throwIfAborted();
      hash.update(chunk);
      progress.advance(chunk.length);
    }
    const actual = hash.digest("hex");
    if (actual !== sha256) throw damaged(file, name, actual, sha256);
  }
  const named = new Set([MANIFEST, MANIFEST_HASH, ...manifest.members.map(({ name }) => name)]);
  const unknown = found.filter((member) => !named.has(member.name) || members.get(member.name) !== member);
  return { manifest, unknownMembers: unknown.map(({ name }) => name), read };
}

const ANOTHER = "Use another backup, or copy the file again";

async function listMembers(file: string): Promise<TarMember[]> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, "r");
    return await listTar(handle);
  } catch (thrown) {
    if (thrown instanceof TarError)
      throw new BackupError(`${file} is not a complete backup: ${thrown.message}. ${ANOTHER}`);
    throw new BackupError(`${file} cannot be read: ${messageOf(toError(thrown))}`);
  } finally {
    await handle?.close();
  }
}

async function readManifest(
  file: string,
  read: (name: string) => AsyncIterable<Buffer>,
): Promise<BackupManifest> {
  const text = await readText(read(MANIFEST));
  const [expected = ""] = (await readText(read(MANIFEST_HASH))).split(" ");
  const actual = createHash("sha256").update(text).digest("hex");
  if (actual !== expected) throw damaged(file, MANIFEST, actual, expected);
  const given: unknown = JSON.parse(text);
  const { format, version, migration } = z
    .looseObject({ format: z.unknown(), version: z.unknown(), migration: z.unknown() })
    .parse(given);
  const newest = listMigrations().at(-1) ?? 0;
  if (format !== BACKUP_FORMAT || Number(migration) > newest)
    throw new BackupError(
      `${file} was made by Longwatch ${String(version)}, which is newer than this one (${readVersion()}): restore it with that version or a later one`,
    );
  const manifest = BackupManifest.parse(given);
  if (!listMigrations().includes(manifest.migration))
    throw new BackupError(
      `${file}: its tables are of the migration ${manifest.migration}, which Longwatch ${readVersion()} does not have: restore it with ${BEFORE_BASELINE}, and then start this version on that database`,
    );
  return manifest;
}

function damaged(file: string, member: string, actual: string, expected: string): BackupError {
  return new BackupError(
    `${file} is damaged: the member ${member} has the SHA-256 hash ${actual} instead of ${expected}. ${ANOTHER}`,
  );
}

async function readText(content: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function* emptyContent(): AsyncGenerator<Buffer, void, undefined> {}
