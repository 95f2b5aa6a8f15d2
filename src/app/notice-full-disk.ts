import { findCluster } from "#adapters/embedded/place-cluster.ts";
import type { AnyJob } from "#adapters/queue/define-job.ts";
import type { Clock } from "#lib/clock.ts";
import { describeDisk, isFullDisk, readDiskSpace } from "#lib/disk.ts";
import { toError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import { createRateLimitedReport } from "#lib/rate-limiter.ts";
import type { DatabaseWatch } from "./watch-database.ts";

/**
 * Every zone is polled more often than this, and every poll writes. Without a further failure for this time, the disk
 * has space again.
 */
const OVER_AFTER_MS = 5 * 60_000;

export interface FullDiskNotice {
  /** Checks the error of a job or a tick. */
  readonly onFailure: (thrown: unknown) => void;
  /** Returns the same job with its errors checked. */
  readonly watchJob: (job: AnyJob) => AnyJob;
  readonly stop: () => void;
}

/** Notices SQLSTATE 53100, a full disk, in errors of the embedded server or another one. */
export function createFullDiskNotice(parts: {
  /** Data folder of the embedded Postgres; null for another server. */
  readonly dataDir: string | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly watch: Pick<DatabaseWatch, "failed" | "recovered">;
  readonly overAfterMs?: number;
}): FullDiskNotice {
  const { dataDir, clock, log, watch, overAfterMs = OVER_AFTER_MS } = parts;
  let timer: NodeJS.Timeout | undefined;
  const report = createRateLimitedReport((_where, error, leftOut) => {
    log.error({ err: error, disk: describePlace(dataDir), leftOut }, "database disk ran full");
  }, clock);

  function onFailure(thrown: unknown): void {
    if (!isFullDisk(thrown)) return;
    report("disk", toError(thrown));
    const headline = `The disk of the database is full, so new events cannot be stored. Free space or enlarge the disk: ${describePlace(dataDir)}`;
    watch.failed("disk", { headline, isDiskFull: true });
    clearTimeout(timer);
    timer = setTimeout(() => watch.recovered("disk"), overAfterMs).unref();
  }

  return {
    onFailure,
    watchJob: (job) => ({
      ...job,
      async run(payload, signal) {
        try {
          await job.run(payload, signal);
        } catch (thrown) {
          onFailure(thrown);
          throw thrown;
        }
      },
    }),
    stop: () => clearTimeout(timer),
  };
}

function describePlace(dataDir: string | null): string {
  if (dataDir === null) return "the disk of the Postgres server of DATABASE_URL (SQLSTATE 53100)";
  const space = readDiskSpace(findCluster(dataDir));
  return space === null ? `the disk of ${dataDir}` : describeDisk(space);
}
