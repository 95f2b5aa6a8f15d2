/** The space of a disk, and the failure of a full one. */
import { existsSync, statfsSync, statSync } from "node:fs";
import path from "node:path";
import { readSqlState } from "./errors.ts";

/** The disk that holds a folder. */
export interface DiskSpace {
  readonly folder: string;
  /** The topmost folder on the same disk. */
  readonly mountPoint: string;
  /** Space that a program without special rights may still write. */
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/**
 * Returns the space of the disk that holds `folder`, which need not exist yet. Returns null if the system does not
 * report it.
 */
export function readDiskSpace(folder: string): DiskSpace | null {
  try {
    const existing = findExisting(path.resolve(folder));
    const { bsize, bavail, blocks } = statfsSync(existing);
    // Some network file systems report zero for everything.
    if (blocks === 0) return null;
    return {
      folder: path.resolve(folder),
      mountPoint: findMountPoint(existing),
      freeBytes: bavail * bsize,
      totalBytes: blocks * bsize,
    };
  } catch {
    return null;
  }
}

function findExisting(folder: string): string {
  return existsSync(folder) ? folder : findExisting(path.dirname(folder));
}

function findMountPoint(folder: string): string {
  const parent = path.dirname(folder);
  return parent === folder || statSync(parent).dev !== statSync(folder).dev ? folder : findMountPoint(parent);
}

const UNITS = ["kB", "MB", "GB", "TB"] as const;

/** Returns `512 kB`, `3 MB`, `1.2 GB`: decimal units, one decimal from a gigabyte on. */
export function formatBytes(bytes: number): string {
  const power = Math.min(Math.max(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), 1), UNITS.length);
  const value = bytes / 1_000 ** power;
  return `${power > 2 ? value.toFixed(1) : Math.floor(value)} ${UNITS[power - 1]}`;
}

/** SQLSTATE of Postgres: the server's disk is full. */
const DISK_FULL = "53100";
const CODES = new Set(["ENOSPC", "EDQUOT"]);
const WORDS = /No space left on device|Disk quota exceeded/;

/** Returns whether this failure or one of its causes is a full disk, of this machine or of the Postgres server. */
export function isFullDisk(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  if (CODES.has((thrown as NodeJS.ErrnoException).code ?? "")) return true;
  return readSqlState(thrown) === DISK_FULL || saysFullDisk(thrown.message) || isFullDisk(thrown.cause);
}

/** Returns whether a program's output reports a full disk. */
export function saysFullDisk(text: string): boolean {
  return WORDS.test(text);
}

/**
 * Thrown when the disk of the data folder has no room for the embedded Postgres. Its message is written for the
 * operator.
 */
export class FullDiskError extends Error {
  override readonly name = "FullDiskError";
  readonly code = "DISK_FULL";
}

/** Returns one sentence: which disk, which folder, how much is free. */
export function describeDisk({ folder, mountPoint, freeBytes, totalBytes }: DiskSpace): string {
  return `the disk of ${folder} (mounted at ${mountPoint}) has ${formatBytes(freeBytes)} of ${formatBytes(totalBytes)} free`;
}
