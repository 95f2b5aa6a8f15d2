import { Redis } from "ioredis";
import type { Secret } from "../secret.ts";

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * What is wrong with a Redis that answers; null where nothing is. A store that evicts takes queued jobs away unseen, and
 * BullMQ only prints that. Rejects where the store does not answer.
 */
export async function findStoreMistake(url: Secret): Promise<string | null> {
  const redis = new Redis(url.reveal(), {
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
