import { findCluster } from "#adapters/embedded/place-cluster.ts";
import { openOutageFile, type PostgresOutage } from "#adapters/embedded/supervise-postgres.ts";
import type { Clock } from "#lib/clock.ts";
import { describeDisk, formatBytes, readDiskSpace } from "#lib/disk.ts";
import { toError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import type { DatabaseWatch } from "./watch-database.ts";

export interface OutageReports {
  readonly clock: Clock;
  readonly onDown: (outage: PostgresOutage) => void;
  readonly onUp: (outage: PostgresOutage) => void;
}

/** Reports every outage of the embedded Postgres to the log, to the file that `status` reads and to the watch. */
export function createOutageReports(parts: {
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly watch: Pick<DatabaseWatch, "failed" | "recovered">;
}): OutageReports {
  const { dataDir, clock, log, watch } = parts;
  const write = openOutageFile(dataDir);
  const record = (outage: PostgresOutage, untilMs: number | null) => {
    try {
      write(outage, untilMs);
    } catch (thrown) {
      log.warn({ err: toError(thrown) }, "Postgres outage not recorded");
    }
  };
  return {
    clock,
    onDown(outage) {
      const { reason, lines, failedRestarts, isDiskFull } = outage;
      record(outage, null);
      const space = readDiskSpace(findCluster(dataDir));
      const disk = space === null ? {} : { folder: space.folder, free: formatBytes(space.freeBytes) };
      log.error(
        { reason, lines, failedRestarts, isDiskFull, ...disk },
        failedRestarts === 0 ? "embedded Postgres ended" : "embedded Postgres not restarted",
      );
      watch.failed("server", { headline: headlineOf(outage, dataDir), isDiskFull });
    },
    onUp(outage) {
      const atMs = clock();
      record(outage, atMs);
      log.info(
        { downMs: atMs - outage.sinceMs, failedRestarts: outage.failedRestarts },
        "embedded Postgres restarted",
      );
      watch.recovered("server");
    },
  };
}

const MEANING =
  "The embedded Postgres is down. No events are copied, and no spikes are detected. Longwatch keeps restarting Postgres";

function headlineOf({ reason, lines, isDiskFull }: PostgresOutage, dataDir: string): string {
  const space = readDiskSpace(findCluster(dataDir));
  if (isDiskFull && space !== null)
    return `${MEANING}. Its disk is full: ${describeDisk(space)}. Free space or enlarge the disk`;
  const last = lines.at(-1);
  return `${MEANING}. Postgres ended with ${reason}${last === undefined ? "" : `; its last error: ${last}`}`;
}
