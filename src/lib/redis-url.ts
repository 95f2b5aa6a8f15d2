/** Where the servers of one Redis are, as `REDIS_URL` names them. */
export interface RedisPlace {
  readonly kind: "server" | "sentinel" | "cluster";
  readonly isEncrypted: boolean;
  /** Empty for the default user. */
  readonly username: string;
  readonly password: string;
  /** The server, the Sentinels, or some nodes of the cluster. */
  readonly hosts: readonly RedisHost[];
  /** Name of the servers at the Sentinels, their database, and the Sentinels' own password. */
  readonly name: string;
  readonly db: number;
  readonly sentinelPassword: string | null;
}

interface RedisHost {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const SEVERAL =
  /^redis(s?)\+(?:(cluster):\/\/([^@/?]*@)?([^@/?]+)|(sentinel):\/\/([^@/?]*@)?([^@/?]+)\/([^/?]+)(?:\/(\d{1,4}))?(?:\?sentinel_password=([^&]+))?)$/;
const HOST = /^(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/i;

/**
 * Reads `redis://host:port/db`, `redis+sentinel://host:port,host:port/name/db` or `redis+cluster://host:port,host:port`, each with
 * `rediss` for TLS. Returns null for any other text.
 */
export function readRedisUrl(text: string): RedisPlace | null {
  const one = URL.parse(text);
  const [, tls, cluster, clusterUser, nodes, , sentinelUser, sentinels, name = "", db, secret] =
    SEVERAL.exec(text) ?? [];
  const isOne = one?.protocol === "redis:" || one?.protocol === "rediss:";
  const kind = isOne ? "server" : cluster === undefined ? "sentinel" : "cluster";
  const user = isOne ? `${one.username}:${one.password}` : (clusterUser ?? sentinelUser ?? "").slice(0, -1);
  const hosts = readHosts(
    isOne ? one.host : (nodes ?? sentinels ?? ""),
    kind === "sentinel" ? 26_379 : 6_379,
  );
  try {
    const [username = "", ...password] = user.split(":");
    if (hosts === null) return null;
    return {
      kind,
      hosts,
      isEncrypted: isOne ? one.protocol === "rediss:" : tls === "s",
      username: decodeURIComponent(username),
      password: decodeURIComponent(password.join(":")),
      name: decodeURIComponent(name),
      db: Number(db ?? 0),
      sentinelPassword: secret === undefined ? null : decodeURIComponent(secret),
    };
  } catch {
    return null;
  }
}

function readHosts(text: string, standardPort: number): RedisHost[] | null {
  const found = text.split(",").map((place) => HOST.exec(place));
  return found.includes(null)
    ? null
    : found.map((match) => ({
        host: (match?.[1] ?? "").replaceAll(/[[\]]/g, ""),
        port: Number(match?.[2] ?? standardPort),
      }));
}
