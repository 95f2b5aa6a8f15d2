import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { z } from "zod";
import { readVersion } from "#config/read-version.ts";
import { BEFORE_BASELINE, listMigrations } from "#db/migrate.ts";
import { messageOf, toError } from "#lib/errors.ts";
import { listTar, TarError, type TarMember } from "#lib/tar.ts";
import {
  BACKUP_FORMAT,
  BackupError,
  BackupManifest,
  createStepProgress,
  MANIFEST,
  MANIFEST_HASH,
} from "./manifest.ts";

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
