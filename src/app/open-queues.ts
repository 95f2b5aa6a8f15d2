import type { Config } from "#config/config.ts";
import type { Metrics } from "#faces/http/metrics.ts";
import type { Health } from "#faces/http/readiness.ts";
import { systemClock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { Secret } from "#lib/secret.ts";
import { createQueueBackend } from "#store/queue/backend.ts";
import type { AnyJob, QueueName } from "#store/queue/define-job.ts";
import { createEnqueuer, type Enqueuer } from "#store/queue/enqueuer.ts";
import { createJobQueue } from "#store/queue/job-queue.ts";
import { createQueueOutageReports } from "./report-outages.ts";

const ENQUEUE_TIMEOUT_MS = 2_000;

export interface QueueParts {
  readonly config: Pick<Config, "redisUrl" | "redisCa" | "roles">;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly jobs: readonly AnyJob[];
  readonly zones: number;
  /** How many destinations events are forwarded to. */
  readonly destinations: number;
  readonly databaseUrl: Secret;
}

export interface OpenQueues {
  readonly kind: "redis" | "postgres";
  readonly enqueuer: Enqueuer;
  /** Returns the outcome of the last enqueue. Without the queue's store the service continues, more slowly. */
  check(): Promise<Health>;
  /** Starts the workers for the queues of this process's roles. */
  start(): void;
  close(graceMs: number): Promise<void>;
}

export function openQueues({
  config,
  log,
  metrics,
  jobs,
  zones,
  destinations,
  databaseUrl,
}: QueueParts): OpenQueues {
  const queues = config.roles.filter((role): role is QueueName => role !== "http");
  const { redisUrl, redisCa } = config;
  const redis = redisUrl === null ? null : { url: redisUrl, ca: redisCa };
  const backend = createQueueBackend({ redis, databaseUrl });
  const store = backend.kind === "redis" ? "Redis" : "Postgres";
  const outages = createQueueOutageReports(store, { log, clock: systemClock });
  // A backfill occupies one worker per zone and route for a long time; the short jobs need further workers.
  // A destination has one run at a time, which may wait for its receiver, so forwarding needs a place for each.
  const concurrency = 2 * zones + 4 + destinations;
  const jobQueue = createJobQueue({
    backend,
    jobs,
    concurrency,
    enqueueTimeoutMs: ENQUEUE_TIMEOUT_MS,
    onError: (where, error) => outages.onError(where, error),
  });
  let isAdded = true;
  const enqueuer = createEnqueuer({
    jobQueue: {
      ...jobQueue,
      async enqueue(...given) {
        isAdded = await jobQueue.enqueue(...given);
        if (isAdded) outages.onEnqueued();
        else metrics.enqueueFailures.inc();
        return isAdded;
      },
    },
    jobs: jobs.filter(({ queue }) => queues.includes(queue)),
    onError: (job, error) => log.warn({ job, err: error }, "job failed"),
  });
  return {
    kind: backend.kind,
    enqueuer,
    check: async () =>
      isAdded ? { state: "ok" } : { state: "degraded", detail: "the queue store does not answer" },
    start: () => jobQueue.startWorkers(queues),
    close: async (graceMs) => {
      await Promise.all([enqueuer.stop(graceMs), jobQueue.close(graceMs)]);
    },
  };
}
