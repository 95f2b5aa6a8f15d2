/** Files and folders: hashed, published whole, private, and removed when they are old. */
import { createHash } from "node:crypto";
import { chmodSync, createReadStream, type Dirent, lstatSync, readdirSync, type Stats } from "node:fs";
import { mkdir, mkdtemp, open, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Readable } from "node:stream";
import { HOUR_MS, MINUTE_MS } from "./units.ts";

export interface FileHash {
  /** Lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Reads a file once and returns its hash and size. @throws the error of the file system, or the signal's reason. */
export function hashFile(file: string, signal?: AbortSignal): Promise<FileHash> {
  return hashContent(createReadStream(file, { highWaterMark: 1_048_576, signal }));
}

/** Reads a stream to its end and returns its hash and size. @throws the stream's error. */
export async function hashContent(content: Readable): Promise<FileHash> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of content) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { sha256: hash.digest("hex"), bytes };
}

/**
 * Moves a finished file to its name. Once it returns, the file is complete under its name even after a loss of power.
 * Both names must be on one disk.
 */
export async function publishFile(temporary: string, file: string): Promise<void> {
  await sync(temporary);
  await mkdir(path.dirname(file), { recursive: true });
  await rename(temporary, file);
  await sync(path.dirname(file));
}

/** Replaces a file's content: a reader sees the old or the new one, never a part. */
export async function replaceFile(file: string, content: string): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(temporary, content);
  await publishFile(temporary, file);
}

async function sync(name: string): Promise<void> {
  const handle = await open(name, "r").catch((thrown: NodeJS.ErrnoException) => {
    // Windows cannot open a folder.
    if (thrown.code === "EISDIR" || thrown.code === "EPERM") return null;
    throw thrown;
  });
  try {
    await handle?.sync().catch((thrown: NodeJS.ErrnoException) => {
      if (thrown.code !== "EPERM" && thrown.code !== "EINVAL") throw thrown;
    });
  } finally {
    await handle?.close();
  }
}

/** The rights of everybody but the owner. */
const OTHERS = 0o077;
/** Lets the group enter a folder whose names it knows: Postgres, where another user runs it. */
const GROUP_ENTERS = 0o010;

interface LooseEntry {
  readonly path: string;
  readonly mode: number;
}

/**
 * Yields the entries of a folder that others than their owner may use, the folder itself last. Links are not followed, and
 * what is below the names in `except` is left out.
 */
export function* listLoose(folder: string, except: readonly string[] = []): Generator<LooseEntry> {
  for (const entry of readEntries(folder)) {
    const name = path.join(folder, entry.name);
    if (except.includes(entry.name) || entry.isSymbolicLink()) continue;
    if (entry.isDirectory()) yield* listLoose(name);
    else yield* looseEntry(name);
  }
  yield* looseEntry(folder);
}

/** Nothing for a folder that was removed meanwhile. */
function readEntries(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw thrown;
  }
}

function* looseEntry(name: string): Generator<LooseEntry> {
  const found: Stats | undefined = lstatSync(name, { throwIfNoEntry: false });
  const allowed = found?.isDirectory() === true ? GROUP_ENTERS : 0;
  if (found !== undefined && (found.mode & OTHERS & ~allowed) !== 0)
    yield { path: name, mode: found.mode & 0o777 };
}

/**
 * Takes away the rights of others, and returns the entries where it could not, because another user owns them. An
 * interrupted call is repeated by the next one.
 */
export function makePrivate(folder: string, except: readonly string[] = []): LooseEntry[] {
  return [...listLoose(folder, except)].filter(({ path: name, mode }) => {
    try {
      chmodSync(name, mode & ~OTHERS);
      return false;
    } catch (thrown) {
      return (thrown as NodeJS.ErrnoException).code !== "ENOENT";
    }
  });
}

const TOUCH_EVERY_MS = 10 * MINUTE_MS;
/** A touched folder that was last written before this time has no owner any more. */
export const UNTOUCHED_MS = HOUR_MS;

interface TouchedFolder {
  readonly folder: string;
  remove(): Promise<void>;
}

/**
 * Creates a folder of this process for temporary data. The process writes the folder's time again and again, so that
 * other processes, also of other containers, can see when it was killed.
 */
export async function makeTouchedFolder(parent: string, prefix: string): Promise<TouchedFolder> {
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(path.join(parent, prefix));
  const timer = setInterval(() => {
    const now = new Date();
    utimes(folder, now, now).catch(() => undefined);
  }, TOUCH_EVERY_MS).unref();
  return {
    folder,
    async remove() {
      clearInterval(timer);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Removes what in a folder was last written before a moment (epoch ms), except `kept`. A folder that is not there is no error. */
export async function removeOld(folder: string, before: number, kept: readonly string[] = []): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (kept.includes(name)) continue;
    const left = path.join(folder, name);
    const found = await stat(left).catch(() => null);
    if (found !== null && found.mtimeMs < before) await rm(left, { recursive: true, force: true });
  }
}
