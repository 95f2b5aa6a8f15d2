import pino from "pino";
import type { Database } from "#db/client.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import type { IngestObserver } from "#ingest/rules/read-page.ts";
import { createPollEventsJob } from "#jobs/ingest/poll-events.ts";
import { createWalkDaysJob } from "#jobs/ingest/walk-days.ts";
import { createReconcileCountsJob } from "#jobs/proof/reconcile-counts.ts";
import { createRepairWindowJob } from "#jobs/proof/repair-window.ts";
import { createSealWindowsJob } from "#jobs/proof/seal-windows.ts";
import type { Clock } from "#lib/clock.ts";
import { createSecret } from "#lib/secret.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { createEdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import type { AnyJob } from "#store/queue/define-job.ts";

export const ZONE = 101;
export const silent = pino({ level: "silent" });

export interface IngestJobsOptions {
  readonly database: Database;
  readonly url: string;
  readonly accessKey: string;
  readonly clock: Clock;
  readonly observer: IngestObserver;
  readonly erasures?: ErasureGuard;
  /** Default: that of a poll every minute. */
  readonly freshMs?: number;
  /** Hears which nudges the jobs give. */
  readonly told?: (nudge: "missing" | "match" | "repair" | "seal") => void;
}

/** The jobs that copy and prove, of one replica, over real sockets; knows nothing of the test runner, so that a child can have it. */
export function createIngestJobs(options: IngestJobsOptions) {
  const { database, url, accessKey, clock, observer, erasures, told, freshMs = 30_000 } = options;
  const transport = createEdgeTransport({
    baseUrl: url,
    accessKey: createSecret(accessKey),
    sleep: async () => undefined,
  });
  const deps = {
    database,
    partitions: createPartitionKeeper(database),
    edge: createEdgeClient(transport),
    clock,
    log: silent,
    observer,
    freshMs,
    overlapMs: 3 * MINUTE_MS,
    settleMs: 15 * MINUTE_MS,
    fullEveryMs: 15 * MINUTE_MS,
    idleFullEveryMs: 60 * MINUTE_MS,
    shortEveryMs: 1.5 * MINUTE_MS,
    lateEveryMs: 0,
    lastProofMs: 66 * 60 * MINUTE_MS,
    afterPage: () => undefined,
    ...(erasures === undefined ? {} : { erasures }),
  };
  const tell = (nudge: Parameters<NonNullable<typeof told>>[0]) => async () => told?.(nudge);
  const runs = (job: AnyJob) => (signal?: AbortSignal) =>
    job.run({ zoneId: ZONE } as never, signal ?? new AbortController().signal);
  return {
    poll: runs(createPollEventsJob(deps)),
    walk: runs(createWalkDaysJob(deps)),
    reconcile: runs(
      createReconcileCountsJob({ ...deps, afterMissing: tell("missing"), afterMatch: tell("match") }),
    ),
    repair: runs(createRepairWindowJob({ ...deps, afterRepair: tell("repair") })),
    seal: runs(createSealWindowsJob({ ...deps, afterSeal: tell("seal") })),
    close: () => transport.close(),
  };
}
