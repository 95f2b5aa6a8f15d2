import { existsSync } from "node:fs";
import path from "node:path";
import { formatBytes, readDiskSpace } from "#lib/disk-space.ts";
import { describeDisk, FullDiskError } from "#lib/full-disk.ts";
import { findCluster } from "./place-cluster.ts";

/** A new cluster takes 47 MB, the tables 15 MB, and Postgres keeps up to 80 MB of its log for later. */
const FIRST_START_BYTES = 200_000_000;
/** Two log files (WAL) of Postgres and space for the rows of the first minutes. */
const LATER_START_BYTES = 50_000_000;

/**
 * Refuses to create a cluster without enough disk space. An existing cluster is not refused: it may need less than the
 * estimate.
 * @throws {FullDiskError}
 */
export function requireSpace(dataDir: string): void {
  if (hasCluster(dataDir)) return;
  const space = readDiskSpace(findCluster(dataDir));
  if (space !== null && space.freeBytes < FIRST_START_BYTES) throw fullDiskOf(dataDir);
}

/** Returns the error of a data folder whose disk is full: disk, folder and the space that a start needs. */
export function fullDiskOf(dataDir: string, cause?: unknown): FullDiskError {
  const needed = formatBytes(hasCluster(dataDir) ? LATER_START_BYTES : FIRST_START_BYTES);
  // As root, the cluster may be on another disk than the data folder. The fuller disk is named.
  const spaces = [findCluster(dataDir), dataDir].flatMap((folder) => readDiskSpace(folder) ?? []);
  const space = spaces.toSorted((one, other) => one.freeBytes - other.freeBytes)[0] ?? null;
  const facts = space === null ? `the disk of ${dataDir} has no space left` : describeDisk(space);
  return new FullDiskError(
    `Not enough disk space for the embedded Postgres: ${facts}. It needs at least ${needed} there to start, and more for events. ` +
      "Free space or enlarge the disk, or set LONGWATCH_DATA_DIR to a folder on another disk.",
    { cause },
  );
}

function hasCluster(dataDir: string): boolean {
  return existsSync(path.join(findCluster(dataDir), "PG_VERSION"));
}
