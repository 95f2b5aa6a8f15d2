/** Reports outages of Postgres, the queue and the disk. */

import { type Clock, systemClock } from "#lib/clock.ts";
import { describeDisk, formatBytes, isFullDisk, readDiskSpace } from "#lib/disk.ts";
import { messageOf, toError } from "#lib/errors.ts";
import { explainTlsFailure } from "#lib/http.ts";
import type { Log } from "#lib/log.ts";
import { createRateLimitedReport } from "#lib/rate-limiter.ts";
import { findCluster } from "#store/embedded/place-cluster.ts";
import { openOutageFile, type PostgresOutage } from "#store/embedded/supervise-postgres.ts";
import type { AnyJob } from "#store/queue/define-job.ts";
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

/** Reports each lost connection of a pool, the same error at most once a minute: a server that ends loses dozens at once. */
export function reportLostConnections(log: Log, message: string): (error: Error) => void {
  const report = createRateLimitedReport(
    (what, err, leftOut) => log.warn({ err, leftOut }, what),
    systemClock,
  );
  return (error) => report(message, error);
}

/** States of the queue's store that end without a change of Longwatch, by what their errors say. */
const STATES = [
  ["loading", /^LOADING/],
  ["read-only", /^(READONLY|UNBLOCKED|MASTERDOWN|NOREPLICAS|CLUSTERDOWN)|^25006/],
  ["full", /^(OOM|MISCONF)|^53[0-9]{3}/],
  ["emptied", /^NOSCRIPT|^Missing (key|lock)/],
  ["silent", /^(no answer within|Socket timeout)/],
  ["unreachable", /^(ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|E(HOST|NET)UNREACH|57P0|08)/],
  ["unreachable", /isn't writeable|max retries|(Connection|Socket|timeout) .*(closed|terminated|trying)/],
] as const;
type StoreState = (typeof STATES)[number][0];

/** Connections that wait for their next attempt may report an outage that has just ended. */
const SETTLE_MS = 5_000;

/**
 * Reports the outages of the queue's store: one warning for each state, without a stack, and one line when the store works
 * again. During an outage hundreds of commands fail, but all work goes on in this process. An error that names no such
 * state is reported with its stack, at most once a minute.
 */
export function createQueueOutageReports(
  store: "Redis" | "Postgres",
  { log, clock }: { readonly log: Log; readonly clock: Clock },
) {
  let outage: { sinceMs: number; lastMs: number; errors: number; states: Set<StoreState> } | null = null;
  const reportOther = createRateLimitedReport((where, err, leftOut) => {
    log.warn({ where, err, leftOut }, "queue operation failed");
  }, clock);
  const note = (state: StoreState, where: string, reason: string) => {
    const nowMs = clock();
    outage ??= { sinceMs: nowMs, lastMs: nowMs, errors: 0, states: new Set() };
    outage.lastMs = nowMs;
    outage.errors += 1;
    if (outage.states.has(state)) return;
    outage.states.add(state);
    log.warn({ store, state, where, reason }, "queue store failed");
  };
  return {
    onError(where: string, thrown: Error): void {
      const error = explainTlsFailure(thrown, store);
      const { code = "" } = error as NodeJS.ErrnoException;
      // If a name has several addresses that all fail, there is no message.
      const reason = messageOf(error) || code;
      const state = STATES.find(([, said]) => said.test(code) || said.test(error.message))?.[0];
      if (error !== thrown || state === undefined) reportOther(where, error);
      else note(state, where, reason);
    },
    /** Call it after each successful enqueue. */
    onEnqueued(): void {
      if (outage === null || clock() - outage.lastMs < SETTLE_MS) return;
      const { sinceMs, errors } = outage;
      log.info({ store, downMs: clock() - sinceMs, errors }, "queue store recovered");
      outage = null;
    },
  };
}

/**
 * Every zone is polled more often than this, and every poll writes. Without a further failure for this time, the disk
 * has space again.
 */
const OVER_AFTER_MS = 5 * 60_000;

interface FullDiskNotice {
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
