import { Redis } from "ioredis";
import { type RedisAddress, toRedisConnection } from "./redis-connection.ts";

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Returns what is wrong with a Redis that answers, or null. A store with an eviction policy silently removes queued
 * jobs, and BullMQ only prints a warning. Rejects if the store does not answer.
 */
export async function findStoreMistake(address: RedisAddress): Promise<string | null> {
  const { url, ...tls } = toRedisConnection(address);
  const redis = new Redis(url, {
    ...tls,
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  redis.on("error", () => undefined);
  try {
    await redis.connect();
    const policy = /^maxmemory_policy:(\S+)/m.exec(await redis.info("memory"))?.[1];
    if (policy === undefined || policy === "noeviction") return null;
    return `maxmemory-policy is ${policy}, must be noeviction: queued jobs would vanish`;
  } finally {
    redis.disconnect();
  }
}
