import { Redis } from "ioredis";
import pg from "pg";
import type { QueueBackend } from "#store/queue/backend.ts";
import type { AnyJob } from "#store/queue/define-job.ts";
import { createJobQueue, type JobQueue, type JobQueueOptions } from "#store/queue/job-queue.ts";
import { atEnd } from "#test/support/at-end.ts";
import { createTestDatabase } from "#test/support/database.ts";
import { overTcp } from "#test/support/over-tcp.ts";
import { findRedisServer, startTestRedis } from "#test/support/redis.ts";
import type { Kind } from "./backend.ts";
import { type Relay, startRelay } from "./relay.ts";

const redisServer = findRedisServer();

/** For `describe.each`: both backends, the one that cannot run here skipped by name. */
export const KINDS = [
  { kind: "postgres" as const, skipped: false, name: "on Postgres" },
  {
    kind: "redis" as const,
    skipped: redisServer === null,
    name: redisServer === null ? "on Redis (skipped: no valkey-server or redis-server on PATH)" : "on Redis",
  },
];

/** Where a backend keeps its jobs: a real server, also reachable by way of a relay. */
export interface Store {
  readonly kind: Kind;
  readonly url: string;
  /** Address of the same store through `relay`. */
  readonly relayedUrl: string;
  readonly relay: Relay;
  /** Everything in it is gone, as after FLUSHALL. */
  wipe(): Promise<void>;
  drop(): Promise<void>;
}

export async function createStore(kind: Kind): Promise<Store> {
  const base = kind === "redis" ? await startRedisStore() : await createPostgresStore();
  const target = new URL(base.url);
  const relay = await startRelay(Number(target.port));
  const relayed = new URL(overTcp(base.url));
  relayed.hostname = "127.0.0.1";
  relayed.port = String(relay.port);
  return {
    ...base,
    kind,
    relay,
    relayedUrl: relayed.href,
    async drop() {
      await relay.close();
      await base.drop();
    },
  };
}

async function startRedisStore() {
  const redis = await startTestRedis(redisServer ?? "");
  const wipe = async () => void (await askRedis(redis.url, "FLUSHALL"));
  return { url: redis.url, wipe, drop: () => redis.stop() };
}

async function createPostgresStore() {
  const database = await createTestDatabase();
  const wipe = async () => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query("delete from bullmq.job");
    await client.end();
  };
  return { ...database, wipe };
}

/** One command to a Redis. */
export async function askRedis(url: string, command: string, ...args: string[]): Promise<unknown> {
  const redis = new Redis(url);
  try {
    return await redis.call(command, ...args);
  } finally {
    redis.disconnect();
  }
}

/** Opens a job queue on the backend with its reported errors; closed when the test or its file ends. */
export function openJobQueue(
  backend: QueueBackend,
  jobs: readonly AnyJob[],
  over: Partial<JobQueueOptions> = {},
): JobQueue & { readonly errors: string[] } {
  const errors: string[] = [];
  const jobQueue = createJobQueue({
    backend,
    jobs,
    concurrency: 2,
    enqueueTimeoutMs: 5_000,
    onError: (where, error) => errors.push(`${where}: ${error.message}`),
    ...over,
  });
  atEnd(() => jobQueue.close(1_000));
  return { ...jobQueue, errors };
}
