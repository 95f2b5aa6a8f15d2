import { readRedisInfo } from "./read-redis-info.ts";
import type { RedisAddress } from "./redis-connection.ts";

/**
 * Returns what is wrong with a Redis that answers, or null. A store with an eviction policy silently removes queued
 * jobs, and BullMQ only prints a warning. Rejects if the store does not answer.
 */
export async function findStoreMistake(address: RedisAddress): Promise<string | null> {
  const policy = (await readRedisInfo(address)).get("maxmemory_policy");
  if (policy === undefined || policy === "noeviction") return null;
  return `maxmemory-policy is ${policy}, must be noeviction: queued jobs would vanish`;
}
