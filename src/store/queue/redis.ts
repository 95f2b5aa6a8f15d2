/** The address of Redis and what it says about itself. */
import { isIP } from "node:net";
import { Redis } from "ioredis";
import type { Secret } from "#lib/secret.ts";

export interface RedisAddress {
  readonly url: Secret;
  /** PEM of the authorities that may sign the server's certificate; null: those that Node knows. */
  readonly ca: string | null;
}

interface RedisConnectionOptions {
  readonly url: string;
  readonly tls?: { readonly ca?: string; readonly servername?: string };
}

/**
 * Returns the options of every connection to Redis. TLS is configured here and not by the client, which treats
 * `REDISS://` as plain text and sends no server name, by which providers separate their customers.
 */
export function toRedisConnection({ url, ca }: RedisAddress): RedisConnectionOptions {
  const { protocol, hostname } = new URL(url.reveal());
  if (protocol !== "rediss:") return { url: url.reveal() };
  const isName = isIP(hostname.replaceAll(/[[\]]/g, "")) === 0;
  const tls = { ...(ca === null ? {} : { ca }), ...(isName ? { servername: hostname } : {}) };
  return { url: url.reveal(), tls };
}

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

/**
 * Returns what is wrong with a Redis that answers, or null. A store with an eviction policy silently removes queued
 * jobs, and BullMQ only prints a warning. Rejects if the store does not answer.
 */
export async function findStoreMistake(address: RedisAddress): Promise<string | null> {
  const policy = (await readRedisInfo(address)).get("maxmemory_policy");
  if (policy === undefined || policy === "noeviction") return null;
  return `maxmemory-policy is ${policy}, must be noeviction: queued jobs would vanish`;
}
