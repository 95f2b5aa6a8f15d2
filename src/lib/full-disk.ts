import { type DiskSpace, formatBytes } from "./disk-space.ts";
import { readSqlState } from "./sql-state.ts";

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
