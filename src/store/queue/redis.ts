/** The address of Redis and what it says about itself. */
import { isIP } from "node:net";
import { Cluster, type ClusterNode, Redis, type RedisOptions } from "ioredis";
import { readRedisUrl } from "#lib/redis-url.ts";
import type { Secret } from "#lib/secret.ts";

export interface RedisAddress {
  readonly url: Secret;
  /** PEM of the authorities that may sign the server's certificate; null: those that Node knows. */
  readonly ca: string | null;
}

interface RedisConnection
  extends Pick<RedisOptions, "sentinels" | "name" | "db" | "username" | "password" | "sentinelPassword">,
    Pick<RedisOptions, "tls" | "sentinelTLS" | "enableTLSForSentinelMode" | "failoverDetector"> {
  readonly url?: string;
  /** Some nodes of a cluster. The other options apply to each node. */
  readonly cluster?: ClusterNode[];
}

interface OpenOptions
  extends RedisConnection,
    Pick<RedisOptions, "connectTimeout" | "commandTimeout" | "lazyConnect" | "maxRetriesPerRequest">,
    Pick<RedisOptions, "retryStrategy" | "sentinelRetryStrategy" | "enableOfflineQueue"> {}

/**
 * Returns the options of every connection to Redis. TLS is configured here and not by the client, which treats
 * `REDISS://` as plain text and sends no server name, by which providers separate their customers.
 */
export function toRedisConnection({ url, ca }: RedisAddress): RedisConnection {
  const place = readRedisUrl(url.reveal());
  const [first] = place?.hosts ?? [];
  if (place === null || first === undefined) throw new Error("REDIS_URL has no host");
  const { kind, isEncrypted, username, password, name, db, sentinelPassword } = place;
  const isName = kind === "server" && isIP(first.host) === 0;
  const tls = { ...(ca === null ? {} : { ca }), ...(isName ? { servername: first.host } : {}) };
  const encryption = isEncrypted ? { tls } : {};
  if (kind === "server") return { url: url.reveal(), ...encryption };
  const user = { ...(username === "" ? {} : { username }), ...(password === "" ? {} : { password }) };
  const hosts = [...place.hosts];
  if (kind === "cluster") return { cluster: hosts, ...user, ...encryption };
  return {
    sentinels: hosts,
    name,
    db,
    ...user,
    ...(sentinelPassword === null ? {} : { sentinelPassword }),
    ...(isEncrypted ? { tls, sentinelTLS: tls, enableTLSForSentinelMode: true } : {}),
    // A former primary that hangs keeps its connections.
    failoverDetector: true,
  };
}

/** BullMQ's blocking commands take ten seconds at most. A connection without an answer for longer leads nowhere. */
const SILENT_MS = 20_000;

/** Opens a client with the options of `toRedisConnection` and others. */
export function openRedis({ cluster, url, ...others }: OpenOptions): Redis | Cluster {
  const options = { ...others, socketTimeout: SILENT_MS };
  if (cluster === undefined) return url === undefined ? new Redis(options) : new Redis(url, options);
  const { retryStrategy, enableOfflineQueue, lazyConnect, ...redisOptions } = options;
  return new Cluster(cluster, {
    redisOptions,
    ...(enableOfflineQueue === undefined ? {} : { enableOfflineQueue }),
    ...(lazyConnect === undefined ? {} : { lazyConnect }),
    clusterRetryStrategy: (times) => retryStrategy?.(times),
    // The certificates of the nodes are for their names.
    ...(redisOptions.tls === undefined ? {} : { dnsLookup: (name, done) => done(null, name) }),
  });
}

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Returns the members of Redis's INFO: server, memory and persistence. Rejects with the store's own reason if it does not
 * answer. Of a cluster, those of the first node that may evict jobs, or of any node.
 */
export async function readRedisInfo(address: RedisAddress): Promise<ReadonlyMap<string, string>> {
  const redis = openRedis({
    ...toRedisConnection(address),
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
  });
  let reason: unknown;
  redis.on("error", (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    const nodes = redis instanceof Cluster ? redis.nodes("master") : [redis];
    const found = (await Promise.all(nodes.map((node) => node.info()))).map(toMembers);
    const [first = new Map<string, string>()] = found;
    return found.find((members) => members.get("maxmemory_policy") !== "noeviction") ?? first;
  } catch (thrown) {
    throw reason ?? thrown;
  } finally {
    redis.disconnect();
  }
}

function toMembers(info: string): ReadonlyMap<string, string> {
  return new Map(
    [...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name = "", value = ""]) => [name, value] as const),
  );
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
