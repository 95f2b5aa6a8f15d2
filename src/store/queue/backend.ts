/** The store of the queue: Redis, or Postgres through a guard. */

import { createHash } from "node:crypto";
import type { EventEmitter } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import {
  type BackendFactory,
  createIORedisClient,
  createRedisBackend,
  type IQueueBackend,
  type JobsOptions,
  PostgresConnection,
  type PostgresConnectionOptions,
  PostgresQueueBackend,
  type Processor,
  Queue,
  RedisConnection,
  Worker,
  type WorkerOptions,
  withBackend,
} from "bullmq";
import { ReplyError } from "ioredis";
import { readSqlState } from "#lib/errors.ts";
import type { Secret } from "#lib/secret.ts";
import { withSession } from "#lib/sql-session.ts";
import type { Part } from "./lasting.ts";
import { findStoreMistake, openRedis, type RedisAddress, toRedisConnection } from "./redis.ts";

// BullMQ's own clients are of one server, or of its Sentinels.
RedisConnection.clientFactory = (options) =>
  createIORedisClient(openRedis(options as Parameters<typeof openRedis>[0]));

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
  /** `isRunning` returns whether the worker still runs the job of this id. If left out, it does. */
  openWorker(
    name: string,
    processor: Processor,
    options: Omit<WorkerOptions, "connection" | "prefix">,
    isRunning?: (jobId: string) => boolean,
  ): Part;
  /** Returns what is configured wrongly in the store, in a message for people; null if nothing is. */
  findMistake(): Promise<string | null>;
}

interface QueueBackendOptions {
  readonly redis: RedisAddress | null;
  readonly databaseUrl: Secret;
  /** Braces keep all keys of one queue in one Redis Cluster slot. */
  readonly prefix?: string;
  /** Longest pause within a transaction of Postgres; ms. */
  readonly idleInTransactionMs?: number;
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
    ? postgresBackend(options.databaseUrl, options.idleInTransactionMs ?? IDLE_IN_TRANSACTION_MS)
    : redisBackend(options.redis, options.prefix ?? "{longwatch}");
}

/** Returns the pause before an attempt to connect, in ms. BullMQ's own pauses grow to 20 s, and a failover is over sooner. */
const pauseBefore = (attempt: number) => Math.min(1_000 * 2 ** (attempt - 1), 5_000);

function redisBackend(address: RedisAddress, prefix: string): QueueBackend {
  // A producer must fail rather than wait forever; a worker's blocking connection must wait forever.
  const connection = { ...toRedisConnection(address), retryStrategy: pauseBefore };
  const producer = { ...connection, maxRetriesPerRequest: 1, enableOfflineQueue: false };
  const consumer = { ...connection, maxRetriesPerRequest: null };
  return {
    kind: "redis",
    openQueue: (name) =>
      new Queue(name, { connection: producer, prefix, defaultJobOptions: JOB_OPTIONS }, createRedisBackend),
    openWorker: (name, processor, worker, isRunning) =>
      new Worker(name, processor, { ...worker, connection: consumer, prefix }, (...given) =>
        forgetEnded(slowRefusals(createRedisBackend(...given)), isRunning),
      ),
    findMistake: () => findStoreMistake(address),
  };
}

function postgresBackend(url: Secret, idleInTransactionMs: number): QueueBackend {
  const connection = {
    connectionString: url.reveal(),
    schema: "bullmq",
    migrate: true,
    max: 2,
    application_name: "longwatch queue",
    connectionTimeoutMillis: 5_000,
    statement_timeout: 30_000,
    idle_in_transaction_session_timeout: idleInTransactionMs,
    keepAlive: true,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
  };
  const open = (isRunning?: (jobId: string) => boolean) =>
    withBackend((...given: Parameters<typeof createGuardedPostgres>) =>
      forgetEnded(slowRefusals(createGuardedPostgres(...given)), isRunning),
    );
  return {
    kind: "postgres",
    openQueue: (name) => new (open().Queue)(name, { connection, defaultJobOptions: JOB_OPTIONS }),
    openWorker: (name, processor, worker, isRunning) =>
      new (open(isRunning).Worker)(name, processor, {
        drainDelay: POSTGRES_WAIT_SECONDS,
        ...worker,
        connection,
      }),
    findMistake: async () => null,
  };
}

const ignore = () => undefined;

/**
 * Keeps an error listener on a connection even if all listeners are removed, because an error without a listener ends
 * the process.
 */
function keepListener(client: EventEmitter): void {
  const removeAll = client.removeAllListeners.bind(client);
  client.on("error", ignore);
  client.removeAllListeners = (event) => {
    removeAll(event);
    return client.on("error", ignore);
  };
}

/** Replaces the settings that BullMQ sends at the start of a connection, which poolers refuse. */
function setSessions(connection: PostgresConnection): void {
  const pool = connection.pool as unknown as { Client: Parameters<typeof withSession>[0] };
  pool.Client = withSession(pool.Client, {
    search_path: connection.schema,
    // The sweep enqueues a job again whose message a server crash has lost, so no commit has to wait for the disk.
    synchronous_commit: "off",
  });
  // This is the connection that listens.
  Object.assign(connection, { pgModule: { Client: pool.Client } });
}

/** Names BullMQ's few statements, so that the server parses each once per session. */
function prepare(pool: PostgresConnection["pool"]): void {
  const query = pool.query.bind(pool);
  const names = new Map<string, string>();
  const nameOf = (text: string) => {
    const name = names.get(text) ?? createHash("sha256").update(text).digest("hex").slice(0, 32);
    names.set(text, name);
    return name;
  };
  pool.query = (text: unknown, values?: unknown[]) =>
    typeof text === "string"
      ? query({ name: nameOf(text), text, values: values ?? [] } as never)
      : query(text as never, values);
}

/**
 * BullMQ's Postgres backend, except that a connection which dies while it is in use or being closed fails that call
 * and does not end the process. The waiting caller still gets the error.
 */
const createGuardedPostgres: BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> = (
  name,
  options,
  { withBlockingConnection = false } = {},
) => {
  const connection = new PostgresConnection(options.connection);
  setSessions(connection);
  connection.pool.on("connect", (client) => client.on("error", ignore));
  prepare(connection.pool);
  const getListenClient = connection.getListenClient.bind(connection);
  const guarded = new WeakSet<object>();
  connection.getListenClient = async () => {
    const client = await getListenClient();
    if (!guarded.has(client)) keepListener(client as unknown as EventEmitter);
    guarded.add(client);
    return client;
  };
  return new PostgresQueueBackend(connection, name, options, true, withBlockingConnection ? name : undefined);
};

const PAUSE_MS = 1_000;

/**
 * Returns the backend with delayed errors. BullMQ waits after a lost connection, but retries at once, ten thousand
 * times a second, if the store answers with an error (no right, no memory, no disk, read-only), and logs each. So
 * such an error is passed on after a delay.
 */
function slowRefusals<B extends IQueueBackend>(backend: B): B {
  const moveToActive = backend.moveToActive.bind(backend);
  const waitForJob = backend.waitForJob.bind(backend);
  backend.moveToActive = (...given) => late(moveToActive(...given));
  backend.waitForJob = (...given) => late(waitForJob(...given));
  return backend;
}

/**
 * Returns the backend without failed renewals of jobs that have ended meanwhile. BullMQ may renew the lock of a job while the
 * end of the job releases it.
 */
function forgetEnded<B extends IQueueBackend>(backend: B, isRunning = (_jobId: string) => true): B {
  const extendLocks = backend.extendLocks.bind(backend);
  backend.extendLocks = async (...given) => (await extendLocks(...given)).filter(isRunning);
  return backend;
}

async function late<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    // Closing a worker ends its connection, and must not wait.
    if (thrown instanceof ReplyError || readSqlState(thrown) !== null) await delay(PAUSE_MS);
    throw thrown;
  }
}
