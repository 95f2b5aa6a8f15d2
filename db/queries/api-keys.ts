import { and, asc, desc, eq, getTableColumns, lt, sql } from "drizzle-orm";
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
