import { createHash, randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import path from "node:path";
import type { Readable } from "node:stream";
import { formatBytes } from "#lib/disk.ts";
import { messageOf, toError } from "#lib/errors.ts";
import { type FileHash, hashContent, hashFile, publishFile, removeOld, UNTOUCHED_MS } from "#lib/files.ts";
import { readBody } from "#lib/http.ts";
import { DAY_MS } from "#lib/units.ts";
import {
  type ArchiveStorage,
  type ListedFile,
  type NamedFile,
  SPILL_FOLDER,
  StorageError,
  TEMPORARY_FOLDER,
  YOUNG_FILE_MS,
} from "#model/archive-storage.ts";
import { ARCHIVE_KINDS } from "#model/kinds.ts";
import type { Bucket } from "./bucket.ts";
import { createFolderStorage, describeDifference, writeHashed } from "./folder-storage.ts";

const MAX_TEXT_BYTES = 8 * 1_024 * 1_024;
const MISSING = "is missing";

export interface BucketStorageOptions {
  readonly bucket: Bucket;
  /** Absolute; holds the files that were used last. */
  readonly folder: string;
  /** Most bytes of files in the folder, beside those that are being read. */
  readonly cacheBytes: number;
  /** Returns the paths of files that are not in the bucket yet, so that the folder keeps them. */
  readonly listNotUploaded: () => Promise<ReadonlySet<string>>;
}

/** Keeps the archive in a bucket. The folder has the files that were read last, in the same layout. */
export function createBucketStorage(options: BucketStorageOptions): ArchiveStorage {
  const { bucket, folder, cacheBytes } = options;
  const cache = createFolderStorage(folder);
  const locate = (name: string) => path.join(folder, ...name.split("/"));
  const downloads = new Map<string, Promise<string | null>>();
  /** Bytes in the folder when it was last listed, and those that were added since; null before the first listing. */
  let cachedBytes: number | null = null;
  /** Time at which a file in the folder was last used; epoch ms. The time of the file says whether it has changed. */
  const usedAt = new Map<string, number>();
  /** How many readers hold a file. */
  const inUse = new Map<string, number>();

  /** Runs `receive` with the content of an object. Returns how it differs from the file, or null. */
  async function compare(
    file: NamedFile,
    receive: (content: Readable) => Promise<FileHash>,
    signal?: AbortSignal,
  ): Promise<string | null> {
    const content = await bucket.get(file.path, signal);
    if (content === null) return MISSING;
    try {
      return describeDifference(file, await receive(content));
    } catch (thrown) {
      signal?.throwIfAborted();
      const why = messageOf(toError(thrown));
      throw new StorageError(`${file.path} of ${bucket.place} cannot be copied: ${why}`, { cause: thrown });
    }
  }

  async function download(file: NamedFile): Promise<string | null> {
    const temporary = path.join(folder, TEMPORARY_FOLDER, randomUUID());
    try {
      const wrong = await compare(file, (content) => writeHashed(content, temporary));
      if (wrong === null) await publishFile(temporary, locate(file.path));
      return wrong;
    } finally {
      await rm(temporary, { force: true });
    }
  }

  const listCached = async () => (await cache.list()).filter((file) => file.path.endsWith(".parquet"));

  /** After a file was added: removes those that were used longest ago until the rest fits. */
  async function makeRoom(addedBytes: number): Promise<void> {
    if (cachedBytes !== null && (cachedBytes += addedBytes) <= cacheBytes) return;
    const lastUse = (file: ListedFile) => Math.max(file.modifiedAt, usedAt.get(file.path) ?? 0);
    const files = (await listCached()).sort((one, other) => lastUse(one) - lastUse(other));
    let bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const kept = bytes > cacheBytes ? await options.listNotUploaded() : new Set();
    for (const file of files) {
      if (bytes <= cacheBytes) break;
      if (inUse.has(file.path) || kept.has(file.path)) continue;
      await cache.remove(file.path);
      usedAt.delete(file.path);
      bytes -= file.bytes;
    }
    cachedBytes = bytes;
  }

  /** Returns what is wrong with a file that the bucket lacks. The folder is its place until it was uploaded. */
  async function checkFolder(
    file: NamedFile,
    compareThere: () => Promise<string | null>,
  ): Promise<string | null> {
    return (await options.listNotUploaded()).has(file.path) ? compareThere() : MISSING;
  }

  async function check(file: NamedFile, signal?: AbortSignal): Promise<string | null> {
    const found = await bucket.head(file.path, signal);
    if (found === null) return checkFolder(file, () => cache.check(file, signal));
    if (found.sha256 === null && found.bytes === file.bytes) return compare(file, hashContent, signal);
    return describeDifference(file, { bytes: found.bytes, sha256: found.sha256 ?? "" });
  }

  return {
    place: `bucket ${bucket.place}`,
    folder,
    isBucket: true,
    async put(local, name, hash, signal) {
      // It is there if a killed writer has stored it, or if a rewritten day keeps its records.
      const isThere = (await check({ path: name, ...hash }, signal)) === null;
      if (!isThere && !(await bucket.put(name, { ...hash, local }, { isNew: true, signal })))
        throw new StorageError(
          `the bucket ${bucket.place} has an object ${name} with other content; remove it`,
        );
      await cache.put(local, name, hash);
      await makeRoom(hash.bytes);
    },
    check,
    async bring(file, signal) {
      if ((await hashFile(locate(file.path), signal).catch(() => null))?.sha256 === file.sha256) return null;
      signal?.throwIfAborted();
      const running = downloads.get(file.path);
      if (running !== undefined) return running;
      const started = download(file).finally(() => downloads.delete(file.path));
      downloads.set(file.path, started);
      const wrong = await started;
      if (wrong === null) await makeRoom(file.bytes);
      return wrong;
    },
    async touch(file) {
      const stamp = await cache.touch(file);
      if (stamp !== null) usedAt.set(file.path, Date.now());
      return stamp;
    },
    hold(files) {
      const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
      if (bytes > cacheBytes)
        throw new StorageError(
          `files of ${formatBytes(bytes)} are needed at once, more than the cache of ${formatBytes(cacheBytes)}; raise LONGWATCH_ARCHIVE_CACHE_GB`,
          { code: "ARCHIVE_TOO_LARGE" },
        );
      const names = files.map((file) => file.path);
      for (const name of names) inUse.set(name, (inUse.get(name) ?? 0) + 1);
      return () => {
        for (const name of names) {
          const left = (inUse.get(name) ?? 1) - 1;
          if (left === 0) inUse.delete(name);
          else inUse.set(name, left);
        }
      };
    },
    async copy(file, target, signal) {
      const wrong = await compare(file, (content) => writeHashed(content, target), signal);
      return wrong === MISSING ? checkFolder(file, () => cache.copy(file, target, signal)) : wrong;
    },
    async readText(name) {
      const content = await bucket.get(name);
      return content === null ? null : (await readBody(content, MAX_TEXT_BYTES)).toString();
    },
    async writeText(name, text) {
      await bucket.put(name, { text, ...hashText(text) }, { isNew: false });
    },
    createText: (name, text) => bucket.put(name, { text, ...hashText(text) }, { isNew: true }),
    async list() {
      return (await Promise.all(ARCHIVE_KINDS.map((kind) => bucket.list(kind)))).flat();
    },
    async remove(name) {
      await bucket.remove(name);
      await cache.remove(name);
    },
    async forget(listNamed) {
      await removeOld(path.join(folder, TEMPORARY_FOLDER), Date.now() - DAY_MS, [SPILL_FOLDER]);
      await removeOld(path.join(folder, TEMPORARY_FOLDER, SPILL_FOLDER), Date.now() - UNTOUCHED_MS);
      const old = (await listCached()).filter(({ modifiedAt }) => Date.now() - modifiedAt > YOUNG_FILE_MS);
      const named = await listNamed(old.map((file) => file.path));
      for (const file of old)
        if (!named.has(file.path) && !inUse.has(file.path)) {
          await cache.remove(file.path);
          usedAt.delete(file.path);
        }
    },
  };
}

function hashText(text: string): FileHash {
  const bytes = Buffer.from(text);
  return { sha256: createHash("sha256").update(bytes).digest("hex"), bytes: bytes.length };
}
