import type { JobsOptions, Processor, WorkerOptions } from "bullmq";
import { createRedisBackend, Queue, Worker, withBackend } from "bullmq";
import type { Secret } from "../lib/secret.ts";
import { findStoreMistake } from "./find-store-mistake.ts";
import { createGuardedPostgres } from "./guarded-postgres.ts";
import type { Part } from "./lasting.ts";
import { type RedisAddress, toRedisConnection } from "./redis-connection.ts";
import { slowRefusals } from "./slow-refusals.ts";

export interface QueuedJob {
  readonly name: string;
  readonly data: unknown;
  readonly opts: JobsOptions;
}

/** As much of BullMQ's queue as this service uses; the same on either backend. */
interface OpenQueue extends Part {
  /** In one round trip. */
  addBulk(jobs: QueuedJob[]): Promise<unknown>;
  getWaitingCount(): Promise<number>;
}

/** The two backends behind one door: Redis or Valkey when there is a URL, else tables in the service's database. */
export interface QueueBackend {
  readonly kind: "redis" | "postgres";
  openQueue(name: string): OpenQueue;
  openWorker(name: string, processor: Processor, options: Omit<WorkerOptions, "connection" | "prefix">): Part;
  /** What is set wrongly in the store, in a person's words; null where nothing is. */
  findMistake(): Promise<string | null>;
}

export interface QueueBackendOptions {
  readonly redis: RedisAddress | null;
  readonly databaseUrl: Secret;
  /** Braces keep one queue's keys in one Redis Cluster slot. */
  readonly prefix?: string;
}

/**
 * Finished jobs are bounded by count (age alone is only looked at when another job finishes), and a completed id
 * is free again at once.
 */
const JOB_OPTIONS = {
  removeOnComplete: true,
  removeOnFail: { count: 1_000 },
  backoff: { type: "exponential", delay: 1_000, jitter: 0.5 },
} as const;

/**
 * How long an idle worker waits for a notification before it asks by itself. Postgres notifies at once and a lost
 * connection is noticed by keepalive, so the default of 5 s only wakes the server up.
 */
const POSTGRES_WAIT_SECONDS = 60;
const IDLE_TIMEOUT_MS = 5 * 60_000;

export function createQueueBackend(options: QueueBackendOptions): QueueBackend {
  return options.redis === null
    ? postgresBackend(options.databaseUrl)
    : redisBackend(options.redis, options.prefix ?? "{longwatch}");
}

function redisBackend(address: RedisAddress, prefix: string): QueueBackend {
  // A producer must fail rather than wait for ever; a worker's blocking connection must wait for ever.
  const connection = toRedisConnection(address);
  const producer = { ...connection, maxRetriesPerRequest: 1, enableOfflineQueue: false };
  const consumer = { ...connection, maxRetriesPerRequest: null };
  return {
    kind: "redis",
    openQueue: (name) =>
      new Queue(name, { connection: producer, prefix, defaultJobOptions: JOB_OPTIONS }, createRedisBackend),
    openWorker: (name, processor, worker) =>
      new Worker(name, processor, { ...worker, connection: consumer, prefix }, (...given) =>
        slowRefusals(createRedisBackend(...given)),
      ),
    findMistake: () => findStoreMistake(address),
  };
}

function postgresBackend(url: Secret): QueueBackend {
  const connection = {
    connectionString: url.reveal(),
    schema: "bullmq",
    migrate: true,
    max: 2,
    application_name: "longwatch queue",
    connectionTimeoutMillis: 5_000,
    statement_timeout: 30_000,
    keepAlive: true,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    // A message that a crash of the server loses is rung again by the rows: no commit has to wait for the disk.
    options: "-c synchronous_commit=off",
  };
  const postgres = withBackend((...given: Parameters<typeof createGuardedPostgres>) =>
    slowRefusals(createGuardedPostgres(...given)),
  );
  return {
    kind: "postgres",
    openQueue: (name) => new postgres.Queue(name, { connection, defaultJobOptions: JOB_OPTIONS }),
    openWorker: (name, processor, worker) =>
      new postgres.Worker(name, processor, { drainDelay: POSTGRES_WAIT_SECONDS, ...worker, connection }),
    findMistake: async () => null,
  };
}
