import { and, asc, desc, eq, getTableColumns, inArray, isNull, lt, or, type SQL, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { apiKeys } from "../schema/people.ts";

export type ApiKeyRow = typeof apiKeys.$inferSelect;

/** Includes whether the key is valid by the database's time, which is one clock for all replicas. */
export type FoundApiKey = Pick<
  ApiKeyRow,
  "keyId" | "name" | "keyHash" | "roles" | "zoneIds" | "accounts" | "isMasked"
> & {
  readonly isLive: boolean;
};

/** The condition for a valid key: neither revoked nor expired, by the clock of the database. */
export const isLive = sql<boolean>`(${apiKeys.revokedAt} is null and (${apiKeys.expiresAt} is null or ${apiKeys.expiresAt} > now()))`;

export async function findApiKey(db: Queryable, keyId: string): Promise<FoundApiKey | null> {
  const { keyHash, name, roles, zoneIds, accounts, isMasked } = apiKeys;
  const [row] = await db
    .select({ keyId: apiKeys.keyId, keyHash, name, roles, zoneIds, accounts, isMasked, isLive })
    .from(apiKeys)
    .where(eq(apiKeys.keyId, keyId));
  return row ?? null;
}

/** Returns the hashes of valid keys, most recently used first, at most `limit`. */
export async function listLiveKeyHashes(db: Queryable, limit: number): Promise<Buffer[]> {
  const { keyHash, lastUsedAt } = apiKeys;
  const rows = await db
    .select({ keyHash })
    .from(apiKeys)
    .where(isLive)
    .orderBy(sql`${lastUsedAt} desc nulls last`)
    .limit(limit);
  return rows.map((row) => row.keyHash);
}

/** Returns for how long an admin key will be valid: 0 if none is, null for ever. */
export async function readAdminKeyLeft(db: Queryable): Promise<number | null> {
  const { expiresAt, roles } = apiKeys;
  const [row] = await db
    .select({
      ms: sql<number>`coalesce(max(extract(epoch from ${expiresAt} - now()) * 1000), 0)::float8`,
      isForEver: sql<boolean>`coalesce(bool_or(${expiresAt} is null), false)`,
    })
    .from(apiKeys)
    .where(and(isLive, sql`'admin' = any(${roles})`));
  return row?.isForEver === true ? null : (row?.ms ?? 0);
}

/** Returns the valid keys in the order in which they were made. */
export async function pageLiveApiKeys(
  db: Queryable,
  { offset, limit }: { offset: number; limit: number },
): Promise<{ rows: Pick<ApiKeyRow, "id" | "keyId" | "roles">[]; total: number }> {
  const { id, keyId, roles } = apiKeys;
  const rows = await db
    .select({ id, keyId, roles })
    .from(apiKeys)
    .where(isLive)
    .orderBy(asc(id))
    .limit(limit)
    .offset(offset);
  return { rows, total: await db.$count(apiKeys, isLive) };
}

export type ListedApiKey = Omit<ApiKeyRow, "keyHash"> & { readonly isLive: boolean };

/** Returns keys with ids before `beforeId`, newest first. `withDead` includes the revoked and expired ones. */
export function listApiKeys(
  db: Queryable,
  { beforeId, withDead, limit }: { beforeId: number | null; withDead: boolean; limit: number },
): Promise<ListedApiKey[]> {
  const { keyHash: _, ...columns } = getTableColumns(apiKeys);
  return db
    .select({ ...columns, isLive })
    .from(apiKeys)
    .where(and(withDead ? undefined : isLive, beforeId === null ? undefined : lt(apiKeys.id, beforeId)))
    .orderBy(desc(apiKeys.id))
    .limit(limit);
}

export type NewApiKey = Pick<
  ApiKeyRow,
  "keyId" | "keyHash" | "name" | "roles" | "zoneIds" | "accounts" | "isMasked" | "parentKeyId"
> & {
  /** Counted from now, by the database's clock. Null: never expires. */
  readonly expiresInMs: number | null;
};

/** Inserts a key. A key with a parent expires no later than its parent. A parent that was just revoked makes a revoked key. */
export async function insertApiKey(tx: Queryable, { expiresInMs, ...key }: NewApiKey): Promise<ListedApiKey> {
  const [parent] = await tx
    .select({ expiresAt: apiKeys.expiresAt, revokedAt: apiKeys.revokedAt })
    .from(apiKeys)
    .where(eq(apiKeys.keyId, key.parentKeyId ?? ""))
    // A revocation waits, and then finds the new key.
    .for("share");
  const ms = expiresInMs === null ? null : expiresInMs / 1_000;
  // The smaller one; null is no time.
  const expiresAt = sql`least(now() + make_interval(secs => ${ms}::double precision), ${parent?.expiresAt ?? null}::timestamptz)`;
  const { keyHash: _, ...columns } = getTableColumns(apiKeys);
  const [row] = await tx
    .insert(apiKeys)
    .values({ ...key, expiresAt, revokedAt: parent?.revokedAt ?? null })
    .returning({ ...columns, isLive });
  if (row === undefined) throw new Error("an insert returned no row");
  return row;
}

/**
 * Inserts the key of the first start on a database. If many replicas call at once, one of them inserts its key and
 * the others get false.
 */
export async function insertFirstApiKey(tx: Queryable, key: NewApiKey): Promise<boolean> {
  await tx.execute(sql`lock table ${apiKeys} in share row exclusive mode`);
  if ((await tx.$count(apiKeys)) > 0) return false;
  await insertApiKey(tx, key);
  return true;
}

/**
 * Inserts a key that a person chose. Returns `different` if its id belongs to another key. Concurrent calls with one
 * key produce one row.
 */
export async function keepApiKey(tx: Queryable, key: NewApiKey): Promise<"added" | "same" | "different"> {
  await tx.execute(sql`lock table ${apiKeys} in share row exclusive mode`);
  const known = await findApiKey(tx, key.keyId);
  if (known !== null) return known.keyHash.equals(key.keyHash) ? "same" : "different";
  await insertApiKey(tx, key);
  return "added";
}

/**
 * Revokes a key, then the keys that end with it, level by level. Returns the ids of those keys, or `over` if the key was
 * revoked already. Of two concurrent calls one revokes it.
 */
export async function revokeApiKey(
  tx: Queryable,
  keyId: string,
): Promise<readonly string[] | "over" | "unknown"> {
  const revoke = (which: SQL) =>
    tx
      .update(apiKeys)
      .set({ revokedAt: sql`now()` })
      .where(and(which, isNull(apiKeys.revokedAt)))
      .returning({ keyId: apiKeys.keyId });
  let level = await revoke(eq(apiKeys.keyId, keyId));
  if (level.length === 0) return (await findApiKey(tx, keyId)) === null ? "unknown" : "over";
  const others: string[] = [];
  while (level.length > 0) {
    const parents = level.map((one) => one.keyId);
    level = await revoke(inArray(apiKeys.parentKeyId, parents));
    others.push(...level.map((one) => one.keyId));
  }
  return others;
}

/**
 * Returns the ids of the keys with this id, or of those with this name that are not revoked. Two keys may share a
 * name while one replaces the other.
 */
export async function findApiKeyIds(db: Queryable, idOrName: string): Promise<string[]> {
  const isNamed = and(eq(apiKeys.name, idOrName), isNull(apiKeys.revokedAt));
  const rows = await db
    .select({ keyId: apiKeys.keyId })
    .from(apiKeys)
    .where(or(eq(apiKeys.keyId, idOrName), isNamed))
    .orderBy(asc(apiKeys.id));
  return rows.map(({ keyId }) => keyId);
}

/** Stores that a key was used, at most once a minute for each key, however many replicas report it. */
export async function touchApiKey(db: Queryable, keyId: string): Promise<void> {
  const isStale = sql`(${apiKeys.lastUsedAt} is null or ${apiKeys.lastUsedAt} < now() - interval '1 minute')`;
  await db
    .update(apiKeys)
    .set({ lastUsedAt: sql`now()` })
    .where(and(eq(apiKeys.keyId, keyId), isStale));
}
