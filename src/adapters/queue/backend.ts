import type { JobsOptions, Processor, WorkerOptions } from "bullmq";
import { createRedisBackend, Queue, Worker, withBackend } from "bullmq";
import type { Secret } from "#lib/secret.ts";
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

/** The part of BullMQ's queue that this service uses; the same on either backend. */
interface OpenQueue extends Part {
  add(name: string, data: unknown, options: JobsOptions): Promise<unknown>;
  /** Adds the jobs in one round trip. */
  addBulk(jobs: QueuedJob[]): Promise<unknown>;
  getWaitingCount(): Promise<number>;
}

/** The interface of the two backends: Redis or Valkey when there is a URL, else tables in the service's database. */
export interface QueueBackend {
  readonly kind: "redis" | "postgres";
  openQueue(name: string): OpenQueue;
  openWorker(name: string, processor: Processor, options: Omit<WorkerOptions, "connection" | "prefix">): Part;
  /** Returns what is configured wrongly in the store, in a message for people; null if nothing is. */
  findMistake(): Promise<string | null>;
}

export interface QueueBackendOptions {
  readonly redis: RedisAddress | null;
  readonly databaseUrl: Secret;
  /** Braces keep all keys of one queue in one Redis Cluster slot. */
  readonly prefix?: string;
}

/**
 * Finished jobs are limited by count, because age is only checked when another job finishes. A completed id is free
 * again at once.
 */
const JOB_OPTIONS = {
  removeOnComplete: true,
  removeOnFail: { count: 1_000 },
  backoff: { type: "exponential", delay: 1_000, jitter: 0.5 },
} as const;

/**
 * How long an idle worker waits for a notification before it polls. Postgres notifies at once and keepalive detects a
 * lost connection, so the default of 5 s would only add load.
 */
const POSTGRES_WAIT_SECONDS = 60;
const IDLE_TIMEOUT_MS = 5 * 60_000;
/**
 * Longest pause within a transaction. A replica that freezes or loses its network in one keeps its locks that long.
 * Without a limit Postgres waits for hours. The lock of the schema, without which no replica starts, may be granted to
 * each of its connections in turn, until the statement timeout ends those that wait.
 */
const IDLE_IN_TRANSACTION_MS = 5_000;

export function createQueueBackend(options: QueueBackendOptions): QueueBackend {
  return options.redis === null
    ? postgresBackend(options.databaseUrl)
    : redisBackend(options.redis, options.prefix ?? "{longwatch}");
}

function redisBackend(address: RedisAddress, prefix: string): QueueBackend {
  // A producer must fail rather than wait forever; a worker's blocking connection must wait forever.
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
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
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
