/** Archive files in a folder, and the hash that is counted while a file is written. */

import { createHash } from "node:crypto";
import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type FileHash, hashFile, publishFile, replaceFile } from "#lib/files.ts";
import type { ArchiveStorage, ListedFile, NamedFile } from "#model/archive-storage.ts";
import { ARCHIVE_KINDS } from "#model/kinds.ts";

/** Keeps the archive in a folder on a disk. Files are read where they are. */
export function createFolderStorage(folder: string): ArchiveStorage {
  const locate = (name: string) => path.join(folder, ...name.split("/"));

  /** Reads a whole file with `read`. Returns what is wrong with it, or null. */
  async function compare(file: NamedFile, read: (local: string) => Promise<FileHash>, signal?: AbortSignal) {
    try {
      if (!(await lstat(locate(file.path))).isFile()) return "is not a regular file";
      return describeDifference(file, await read(locate(file.path)));
    } catch (thrown) {
      signal?.throwIfAborted();
      const { code, path: at, syscall } = thrown as NodeJS.ErrnoException;
      if (at !== locate(file.path) && syscall !== "read") throw thrown;
      return code === "ENOENT" ? "is missing" : `cannot be read: ${code}`;
    }
  }
  const check = (file: NamedFile, signal?: AbortSignal) =>
    compare(file, (local) => hashFile(local, signal), signal);

  return {
    place: `folder ${folder}`,
    folder,
    isBucket: false,
    put: (local, name) => publishFile(local, locate(name)),
    check,
    bring: check,
    async touch({ path: name }) {
      const found = await lstat(locate(name)).catch(() => null);
      return found === null ? null : [found.size, found.mtimeMs, found.ctimeMs, found.ino].join(" ");
    },
    hold: () => () => undefined,
    copy: (file, target, signal) =>
      compare(file, (local) => writeHashed(createReadStream(local, { signal }), target), signal),
    async readText(name) {
      // Reading a pipe would wait for a writer.
      const isFile = (await lstat(locate(name)).catch(nothing))?.isFile() === true;
      return isFile ? readFile(locate(name), "utf8").catch(nothing) : null;
    },
    writeText: (name, text) => replaceFile(locate(name), text),
    async createText(name, text) {
      if (existsSync(locate(name))) return false;
      await replaceFile(locate(name), text);
      return true;
    },
    async list() {
      const files: ListedFile[] = [];
      for (const kind of ARCHIVE_KINDS) {
        const entries = await readdir(locate(kind), { recursive: true, withFileTypes: true }).catch(() => []);
        for (const entry of entries) {
          if (entry.isDirectory()) continue;
          const local = path.join(entry.parentPath, entry.name);
          // It may have been removed meanwhile.
          const found = await lstat(local).catch(() => null);
          if (found === null) continue;
          const name = path.relative(folder, local).split(path.sep).join("/");
          files.push({ path: name, bytes: found.size, modifiedAt: found.mtimeMs });
        }
      }
      return files;
    },
    remove: (name) => rm(locate(name), { force: true }),
    forget: async () => undefined,
  };
}

function nothing(thrown: NodeJS.ErrnoException): null {
  if (thrown.code === "ENOENT" || thrown.code === "ENOTDIR") return null;
  throw thrown;
}

/** Writes a new file that lasts, makes its folder, and returns hash and size of what was written. */
export async function writeHashed(content: Readable, file: string): Promise<FileHash> {
  const hash = createHash("sha256");
  let bytes = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  await mkdir(path.dirname(file), { recursive: true });
  await pipeline(content, meter, createWriteStream(file, { flags: "wx", mode: 0o600, flush: true }));
  return { sha256: hash.digest("hex"), bytes };
}

/** Returns how a file differs from what was archived, or null. */
export function describeDifference(expected: FileHash, { sha256, bytes }: FileHash): string | null {
  if (bytes !== expected.bytes) return `has ${bytes} bytes instead of ${expected.bytes}`;
  return sha256 === expected.sha256 ? null : `has another SHA-256: ${sha256}`;
}
