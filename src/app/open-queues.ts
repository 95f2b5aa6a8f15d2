import type { Config } from "../config/config.ts";
import type { Metrics } from "../http/metrics.ts";
import type { Health } from "../http/readiness.ts";
import { systemClock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Secret } from "../lib/secret.ts";
import { explainTlsFailure } from "../lib/tls-failure-error.ts";
import { createQueueBackend } from "../queue/backend.ts";
import { type Bell, createBell } from "../queue/bell.ts";
import type { AnyJob, QueueName } from "../queue/define-job.ts";
import { createDoorbell } from "../queue/doorbell.ts";
import { createTellSeldom } from "./tell-seldom.ts";

const RING_TIMEOUT_MS = 2_000;

export interface QueueParts {
  readonly config: Pick<Config, "redisUrl" | "redisCa" | "roles">;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly jobs: readonly AnyJob[];
  readonly zones: number;
  readonly databaseUrl: Secret;
}

export interface OpenQueues {
  readonly kind: "redis" | "postgres";
  readonly bell: Bell;
  /** By how the last ring went: without the queue's store the service works on, alone and slower. */
  check(): Promise<Health>;
  /** Begins to work on the queues of this process's roles. */
  start(): void;
  close(graceMs: number): Promise<void>;
}

export function openQueues({ config, log, metrics, jobs, zones, databaseUrl }: QueueParts): OpenQueues {
  const queues = config.roles.filter((role): role is QueueName => role !== "http");
  const { redisUrl, redisCa } = config;
  const redis = redisUrl === null ? null : { url: redisUrl, ca: redisCa };
  const backend = createQueueBackend({ redis, databaseUrl });
  const onError = createTellSeldom((where, thrown, leftOut) => {
    const err = explainTlsFailure(thrown, backend.kind === "redis" ? "Redis" : "Postgres");
    log.warn({ where, err, leftOut }, "queue operation failed");
  }, systemClock);
  // A backfill holds one worker per zone and route for a long time; the short jobs need room beside it.
  const concurrency = 2 * zones + 4;
  const doorbell = createDoorbell({ backend, jobs, concurrency, ringTimeoutMs: RING_TIMEOUT_MS, onError });
  let isHeard = true;
  const bell = createBell({
    doorbell: {
      ...doorbell,
      async ring(job, payload, id) {
        isHeard = await doorbell.ring(job, payload, id);
        if (!isHeard) metrics.queueRingFailures.inc();
        return isHeard;
      },
    },
    jobs: jobs.filter(({ queue }) => queues.includes(queue)),
    onError: (job, error) => log.warn({ job, err: error }, "job failed"),
  });
  return {
    kind: backend.kind,
    bell,
    check: async () =>
      isHeard ? { state: "ok" } : { state: "degraded", detail: "the queue store does not answer" },
    start: () => doorbell.startWorkers(queues),
    close: async (graceMs) => {
      await Promise.all([bell.stop(graceMs), doorbell.close(graceMs)]);
    },
  };
}
