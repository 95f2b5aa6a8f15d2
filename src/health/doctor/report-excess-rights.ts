import type { Config } from "#config/config.ts";
import { trustsAnyServer } from "#config/read-database-url.ts";
import type { Database } from "#db/client.ts";
import { type RoleRights, readRoleRights } from "#db/health/server-facts.ts";
import { toError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import { readRedisUrl } from "#lib/redis-url.ts";

type RightsConfig = Pick<Config, "databaseUrl" | "redisUrl" | "roles">;

interface Excess {
  readonly excess: string;
  readonly instead: string;
}

/**
 * Logs once, at the start, the rights that this process has but never needs, because an attacker who takes over the
 * process would have them. Skips the embedded database, which belongs to this process and has one role only.
 */
export async function reportExcessRights(database: Database, config: RightsConfig, log: Log): Promise<void> {
  if (config.databaseUrl === null) return;
  try {
    const found = listExcess(await readRoleRights(database.db), config);
    for (const { excess, instead } of found) log.warn({ excess, instead }, "excess database rights found");
  } catch (thrown) {
    log.warn({ err: toError(thrown) }, "database rights not checked");
  }
}

/** Returns the excess rights of the role, and connections that others can read. */
export function listExcess(rights: RoleRights, config: RightsConfig): Excess[] {
  return [...findExcess(rights, config), ...findAnyServer(config), ...findOpenRedis(config)];
}

export function findExcess(rights: RoleRights, { roles }: Pick<RightsConfig, "roles">): Excess[] {
  const { role, isSuperuser, excess, ownsAudit, isEncrypted, clientAddress } = rights;
  const found: Excess[] = [];
  if (isSuperuser)
    found.push({
      excess: `the database role ${role} is a superuser: it can run programs on the database's machine`,
      instead: "make roles with docs/database-roles.sql and name them in DATABASE_URL",
    });
  else if (excess.length > 0)
    found.push({
      excess: `the database role ${role} has ${excess.join(", ")}`,
      instead: "take them away, as docs/database-roles.sql does",
    });
  if (ownsAudit && roles.every((one) => one === "http"))
    found.push({
      excess: `this process only answers, and its database role ${role} owns the tables`,
      instead: "use the role longwatch_serve of docs/database-roles.sql here",
    });
  if (!isEncrypted && clientAddress !== null && !isLoopback(clientAddress))
    found.push({
      excess: "the connection to Postgres is not encrypted",
      instead: "sslmode=verify-full in DATABASE_URL, unless the network in between is private",
    });
  return found;
}

/** Encryption without verification does not stop an attacker between client and server. */
function findAnyServer({ databaseUrl }: RightsConfig): Excess[] {
  if (databaseUrl === null || !trustsAnyServer(databaseUrl.reveal())) return [];
  return [
    {
      excess: "any server is taken for the Postgres of DATABASE_URL: its certificate is not checked",
      instead: "sslmode=verify-full, with sslrootcert where its authority is not a public one",
    },
  ];
}

function findOpenRedis({ redisUrl }: RightsConfig): Excess[] {
  const place = redisUrl === null ? null : readRedisUrl(redisUrl.reveal());
  if (place === null || place.isEncrypted) return [];
  const { hosts, username } = place;
  if (hosts.every(({ host }) => host === "localhost" || isLoopback(host))) return [];
  const instead = "rediss:// and a user of its own in REDIS_URL, unless the network in between is private";
  const who = username === "" ? ", as its default user" : "";
  return [{ excess: `the connection to Redis is not encrypted${who}`, instead }];
}

/** Returns whether an IPv4 or IPv6 address, with or without brackets, is loopback. */
function isLoopback(address: string): boolean {
  return /^(127\.|::ffff:127\.|\[?::1\]?$)/.test(address);
}
