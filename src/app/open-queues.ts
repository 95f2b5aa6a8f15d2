import type { Config } from "#config/config.ts";
import { claimRuns, type TickRun } from "#db/postgres/leases.ts";
import type { Metrics } from "#faces/http/metrics.ts";
import type { Health } from "#faces/http/readiness.ts";
import type { JobContext } from "#jobs/context.ts";
import { type createJobs, type JobSettings, planTicks } from "#jobs/index.ts";
import type { Clock } from "#lib/clock.ts";
import type { CronRun } from "#lib/cron.ts";
import type { Log } from "#lib/log.ts";
import type { Secret } from "#lib/secret.ts";
import { createQueueBackend } from "#store/queue/backend.ts";
import type { AnyJob, QueueName } from "#store/queue/define-job.ts";
import { createBatch, createEnqueuer, type Enqueuer } from "#store/queue/enqueuer.ts";
import { createJobQueue } from "#store/queue/job-queue.ts";
import { interleave, type ScheduleEntry, staggerTicks, takeTurn } from "#store/queue/schedule.ts";
import { createQueueOutageReports } from "./report-outages.ts";

const ENQUEUE_TIMEOUT_MS = 2_000;

export interface QueueParts {
  readonly config: Pick<Config, "redisUrl" | "redisCa" | "roles">;
  readonly log: Log;
  /** Measures how long an outage lasts. */
  readonly clock: Clock;
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
  clock,
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
  const outages = createQueueOutageReports(store, { log, clock });
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

interface EntryParts extends Pick<JobContext, "database" | "zoneIds"> {
  readonly config: Pick<Config, "roles">;
  readonly jobs: ReturnType<typeof createJobs>;
  readonly settings: JobSettings;
  readonly destinations: readonly string[];
  readonly enqueuer: Enqueuer;
}

/** Returns the ticks of the jobs that this process runs. At each tick only one replica enqueues the jobs. */
export function planEntries({
  config,
  database,
  jobs,
  settings,
  zoneIds,
  destinations,
  enqueuer,
}: EntryParts): ScheduleEntry[] {
  // Many ticks fall due at the same moment: one statement claims them all.
  const claimAll = createBatch((runs: TickRun[]) => claimRuns(database.db, runs));
  return planTicks({ zoneIds, destinations }, settings).flatMap(({ job, expression, groups }) => {
    const queue = jobs.find(({ name }) => name === job)?.queue;
    if (queue === undefined || !config.roles.includes(queue)) return [];
    const run = async (times: CronRun) => {
      const name = `tick.${job}`;
      const turn = (await claimAll({ name, ...times })).get(name);
      if (turn === undefined) return;
      const due = interleave(groups.map(({ payloads, most }) => takeTurn(payloads, most, turn)));
      const delay = (index: number) => staggerTicks(index, due.length, times.nextAt - times.at);
      await Promise.all(due.map((payload, index) => enqueuer.enqueue(job, payload, delay(index))));
    };
    return [{ name: job, expression, run }];
  });
}
