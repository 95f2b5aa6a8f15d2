import { and, asc, desc, eq, getTableColumns, isNull, lt, or, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { apiKeys } from "../schema/api-keys.ts";

export type ApiKeyRow = typeof apiKeys.$inferSelect;

/** With whether it is good at the database's own time: one clock for all replicas. */
export type FoundApiKey = Pick<ApiKeyRow, "keyId" | "name" | "keyHash" | "roles" | "zoneIds" | "isMasked"> & {
  readonly isLive: boolean;
};

const isLive = sql<boolean>`(${apiKeys.revokedAt} is null and (${apiKeys.expiresAt} is null or ${apiKeys.expiresAt} > now()))`;

export async function findApiKey(db: Queryable, keyId: string): Promise<FoundApiKey | null> {
  const { keyHash, name, roles, zoneIds, isMasked } = apiKeys;
  const [row] = await db
    .select({ keyId: apiKeys.keyId, keyHash, name, roles, zoneIds, isMasked, isLive })
    .from(apiKeys)
    .where(eq(apiKeys.keyId, keyId));
  return row ?? null;
}

/** Hashes of those that are good now, the ones used last first; at most so many. */
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

/** Those that are good now, in the order they were made. */
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

/** The newest first, from before `beforeId`; with `withDead` also those that are revoked or expired. */
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

export type NewApiKey = Pick<ApiKeyRow, "keyId" | "keyHash" | "name" | "roles" | "zoneIds" | "isMasked"> & {
  /** From now, by the database's clock; null is for good. */
  readonly expiresInMs: number | null;
};

export async function insertApiKey(tx: Queryable, { expiresInMs, ...key }: NewApiKey): Promise<ListedApiKey> {
  const expiresAt =
    expiresInMs === null
      ? null
      : sql`now() + make_interval(secs => ${expiresInMs / 1_000}::double precision)`;
  const { keyHash: _, ...columns } = getTableColumns(apiKeys);
  const [row] = await tx
    .insert(apiKeys)
    .values({ ...key, expiresAt })
    .returning({ ...columns, isLive });
  if (row === undefined) throw new Error("an insert returned no row");
  return row;
}

/** Of the first start on a database: of many replicas at once one makes the key, and the others see that there is one. */
export async function insertFirstApiKey(tx: Queryable, key: NewApiKey): Promise<boolean> {
  await tx.execute(sql`lock table ${apiKeys} in share row exclusive mode`);
  if ((await tx.$count(apiKeys)) > 0) return false;
  await insertApiKey(tx, key);
  return true;
}

/** A key that somebody made up; `different` where its id is that of another key. Of many at once all get one row. */
export async function keepApiKey(tx: Queryable, key: NewApiKey): Promise<"added" | "same" | "different"> {
  await tx.execute(sql`lock table ${apiKeys} in share row exclusive mode`);
  const known = await findApiKey(tx, key.keyId);
  if (known !== null) return known.keyHash.equals(key.keyHash) ? "same" : "different";
  await insertApiKey(tx, key);
  return "added";
}

/** Ends a key for good; `over` when it was revoked already. Of two at once one ends it. */
export async function revokeApiKey(tx: Queryable, keyId: string): Promise<"revoked" | "over" | "unknown"> {
  const revoked = await tx
    .update(apiKeys)
    .set({ revokedAt: sql`now()` })
    .where(and(eq(apiKeys.keyId, keyId), isNull(apiKeys.revokedAt)))
    .returning({ keyId: apiKeys.keyId });
  if (revoked.length === 1) return "revoked";
  return (await findApiKey(tx, keyId)) === null ? "unknown" : "over";
}

/** The keys of this id, or with this name that are not revoked: a name may be shared while a key is replaced. */
export async function findApiKeyIds(db: Queryable, idOrName: string): Promise<string[]> {
  const isNamed = and(eq(apiKeys.name, idOrName), isNull(apiKeys.revokedAt));
  const rows = await db
    .select({ keyId: apiKeys.keyId })
    .from(apiKeys)
    .where(or(eq(apiKeys.keyId, idOrName), isNamed))
    .orderBy(asc(apiKeys.id));
  return rows.map(({ keyId }) => keyId);
}

/** At most one write a minute for each key, however many replicas note that it was used. */
export async function touchApiKey(db: Queryable, keyId: string): Promise<void> {
  const isStale = sql`(${apiKeys.lastUsedAt} is null or ${apiKeys.lastUsedAt} < now() - interval '1 minute')`;
  await db
    .update(apiKeys)
    .set({ lastUsedAt: sql`now()` })
    .where(and(eq(apiKeys.keyId, keyId), isStale));
}
