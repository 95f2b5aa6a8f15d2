import { findCluster } from "#adapters/embedded/place-cluster.ts";
import { describePostgresFailure, fullDiskOf } from "#adapters/embedded/postgres-error.ts";
import type { Config } from "#config/config.ts";
import { isFullDisk, readDiskSpace } from "#lib/disk.ts";

/** Size of one log file (WAL) of Postgres. Without space for one, the server ends and its clients lose their connections. */
const LOG_FILE_BYTES = 17_000_000;

/** Returns one line with the cause of a failed start and the next step, or null if the database is not the cause. */
export function describeStartFailure(
  thrown: unknown,
  { databaseUrl, dataDir }: Pick<Config, "databaseUrl" | "dataDir">,
): string | null {
  const failure = describePostgresFailure(thrown);
  if (databaseUrl !== null) return failure;
  const free = readDiskSpace(findCluster(dataDir))?.freeBytes ?? Number.POSITIVE_INFINITY;
  const isFull = isFullDisk(thrown) || (failure !== null && free < LOG_FILE_BYTES);
  return isFull ? describePostgresFailure(fullDiskOf(dataDir, thrown)) : failure;
}
