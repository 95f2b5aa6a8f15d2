/** The files of kept hours: found, published, and removed when they are too many. */
import { randomUUID } from "node:crypto";
import { chmod, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { ServiceError } from "#lib/errors.ts";
import { hashFile, removeOld } from "#lib/files.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { KEPT_FOLDER, TEMPORARY_FOLDER } from "#model/archive-storage.ts";
import type { ArchivedDay } from "./archived-days.ts";
import type { DayPart } from "./day-source.ts";

/** The most bytes of all kept files. The files of the oldest hours are removed when there are more. */
const MOST_BYTES = 2_000_000_000;
/** How long a process writes no file after it could not. */
const PAUSE_MS = 5 * MINUTE_MS;
/** A file that is being written for longer belongs to a process that was killed. */
const LEFT_BEHIND_MS = HOUR_MS;

/** Consecutive sealed hours of a day of a zone, or of several. */
export interface Run extends DayPart {
  readonly rows: number;
  /** True for archive days that are copied. Otherwise the events are in Postgres. */
  readonly isCopy?: boolean;
  /** The archive days, if they are read. */
  readonly sources: readonly ArchivedDay[];
  /** Beginning of the file's name: the first hour and the zones, then a hash that changes with every change of the events. */
  readonly place: string;
  readonly version: string;
}

export interface NewFile {
  readonly run: Run;
  readonly temporary: string;
}

/** The files of kept hours in a folder, which any number of processes share. */
export interface KeptHours {
  /** False for some minutes after a failure. */
  mayWrite(): boolean;
  fail(error: unknown): void;
  /** Returns the files of these runs, as far as they are there and whole. */
  find(runs: readonly Run[]): Promise<Map<Run, string>>;
  /** Returns names for new files. */
  begin(runs: readonly Run[]): Promise<NewFile[]>;
  /** Publishes new files, and removes those that they replace. */
  publish(files: readonly NewFile[]): Promise<void>;
}

/** Thrown when a kept file has disappeared or cannot be read. The same search can do without. */
export class KeptFileError extends ServiceError {
  override readonly name = "KeptFileError";
  readonly code = "KEPT_FILE";
  readonly disposition = "retry";
}

export const keptFolder = (archiveFolder: string) => path.join(archiveFolder, TEMPORARY_FOLDER, KEPT_FOLDER);
/** The place and version of the run that a file is of. */
export const runOf = (name: string) => name.split(".").slice(0, 3).join(".");
export const nameOf = ({ place, version }: Run) => `${place}.${version}`;

/** Returns the kept hours of an archive folder. `onFailure` is called once. */
export function openKeptHours(
  archiveFolder: string,
  { mostBytes = MOST_BYTES, onFailure }: { mostBytes?: number; onFailure?: (error: unknown) => void } = {},
): KeptHours {
  const folder = keptFolder(archiveFolder);
  const remove = (name: string) => rm(path.join(folder, name), { force: true });
  /** Size and times of the files that were found to match the hash in their name. */
  const checked = new Map<string, string>();
  let pausedUntil = 0;
  let isReported = false;

  async function isWhole(name: string): Promise<boolean> {
    const { size, mtimeMs, ctimeMs, ino } = await stat(path.join(folder, name));
    const stamp = [size, mtimeMs, ctimeMs, ino].join(" ");
    if (checked.get(name) === stamp) return true;
    const { sha256 } = await hashFile(path.join(folder, name));
    checked.set(name, stamp);
    if (name.endsWith(`.${sha256.slice(0, 16)}.parquet`)) return true;
    checked.delete(name);
    await remove(name);
    return false;
  }

  /** Removes what killed writers left, and the oldest hours beyond the limit. */
  async function trim(): Promise<void> {
    const names = (await readdir(folder)).filter((name) => name.endsWith(".parquet"));
    await removeOld(folder, Date.now() - LEFT_BEHIND_MS, names);
    let bytes = 0;
    for (const name of names.sort().reverse()) {
      bytes += (await stat(path.join(folder, name)).catch(() => null))?.size ?? 0;
      if (bytes > mostBytes) await remove(name);
    }
  }

  return {
    mayWrite: () => performance.now() >= pausedUntil,
    fail(error) {
      pausedUntil = performance.now() + PAUSE_MS;
      if (!isReported) onFailure?.(error);
      isReported = true;
    },
    async find(runs) {
      const names = new Map((await readdir(folder).catch(() => [])).map((name) => [runOf(name), name]));
      const found = new Map<Run, string>();
      for (const run of runs) {
        const name = names.get(nameOf(run));
        if (name !== undefined && (await isWhole(name).catch(() => false)))
          found.set(run, path.join(folder, name));
      }
      return found;
    },
    async begin(runs) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      return runs.map((run) => ({ run, temporary: path.join(folder, `${randomUUID()}.tmp`) }));
    },
    async publish(files) {
      for (const { run, temporary } of files) {
        await chmod(temporary, 0o600);
        const { sha256 } = await hashFile(temporary);
        const name = `${nameOf(run)}.${sha256.slice(0, 16)}.parquet`;
        await rename(temporary, path.join(folder, name));
        const others = (await readdir(folder)).filter((other) => other.startsWith(`${run.place}.`));
        for (const other of others) if (other !== name) await remove(other);
      }
      await trim();
    },
  };
}

/** Removes all kept files. */
export function removeKeptHours(archiveFolder: string): Promise<void> {
  return rm(keptFolder(archiveFolder), { recursive: true, force: true });
}
