import { Redis } from "ioredis";
import { type RedisAddress, toRedisConnection } from "./redis-connection.ts";

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Returns the members of Redis's INFO: server, memory and persistence. Rejects with the store's own reason if it does not
 * answer.
 */
export async function readRedisInfo(address: RedisAddress): Promise<ReadonlyMap<string, string>> {
  const { url, ...tls } = toRedisConnection(address);
  const redis = new Redis(url, {
    ...tls,
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let reason: unknown;
  redis.on("error", (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    const text = await redis.info();
    return new Map(
      [...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name = "", value = ""]) => [name, value] as const),
    );
  } catch (thrown) {
    throw reason ?? thrown;
  } finally {
    redis.disconnect();
  }
}
