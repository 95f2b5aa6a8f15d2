/** Sessions of people and the views that they saved. */
import { and, asc, desc, eq, gt, inArray, isNotNull, isNull, lt, or, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { apiKeys, savedViews, sessions, signInTokens } from "../schema/people.ts";
import { type FoundApiKey, isLive as isKeyLive, touchApiKey } from "./api-keys.ts";

const t = alias(signInTokens, "t");

const IDLE_HOURS = 12;
const MOST_HOURS = 7 * 24;
const MOST_ADMIN_HOURS = 24;
/** The rights are those of the person, or those of the key. A person has no row in api_keys. */
const isPerson = isNotNull(sessions.personName);
const roles = sql<string[]>`coalesce(${sessions.roles}, ${apiKeys.roles})`;
const name = sql<string>`coalesce(${sessions.personName}, ${apiKeys.name})`;
const mostHours = sql`case when 'admin' = any(${roles}) then ${MOST_ADMIN_HOURS}::int else ${MOST_HOURS}::int end`;
const idleAt = sql`${sessions.lastUsedAt} + make_interval(hours => ${IDLE_HOURS})`;
const endsAt = sql`least(${sessions.createdAt} + make_interval(hours => ${mostHours}), ${sessions.tokenEndsAt})`;
const expiresAt = sql<Date>`least(${idleAt}, ${endsAt}, ${apiKeys.expiresAt})`.mapWith(sessions.lastUsedAt);
/** The session and its key, if it has one, by the database's clock. */
const isLive = and(
  isNull(sessions.endedAt),
  sql`least(${idleAt}, ${endsAt}) > now()`,
  or(isPerson, and(isNotNull(apiKeys.keyId), isKeyLive)),
) as SQL<boolean>;

export interface FoundSession {
  readonly id: string;
  readonly expiresAt: Date;
  readonly caller: Pick<FoundApiKey, "keyId" | "name" | "roles" | "zoneIds" | "accounts" | "isMasked">;
  /** Null for a key's session. */
  readonly person: { readonly basis: (typeof sessions.$inferSelect)["claims"] } | null;
}

/** Returns the live sessions with one of these secrets each; without secrets, those of all people. */
export async function findSessions(
  db: Queryable,
  tokenHashes: readonly Buffer[] | null,
): Promise<FoundSession[]> {
  if (tokenHashes?.length === 0) return [];
  const isMeant = tokenHashes === null ? isPerson : inArray(sessions.tokenHash, [...tokenHashes]);
  const zoneIds = sql<
    number[] | null
  >`case when ${isPerson} then ${sessions.zoneIds} else ${apiKeys.zoneIds} end`;
  const isMasked = sql<boolean>`coalesce(${sessions.isMasked}, ${apiKeys.isMasked})`;
  const rows = await db
    .select({
      id: sessions.id,
      expiresAt,
      caller: { keyId: sessions.keyId, name, roles, zoneIds, accounts: apiKeys.accounts, isMasked },
      personName: sessions.personName,
      basis: sessions.claims,
    })
    .from(sessions)
    .leftJoin(apiKeys, eq(apiKeys.keyId, sessions.keyId))
    .where(and(isMeant, isLive));
  return rows.map(({ personName, basis, ...found }) => ({
    ...found,
    person: personName === null ? null : { basis },
  }));
}

/** Stores the rights of a person's session that has not ended. Returns false if it has these rights already. */
export async function changeRights(
  db: Queryable,
  id: string,
  rights: { readonly roles: string[]; readonly zoneIds: number[] | null; readonly isMasked: boolean },
): Promise<boolean> {
  const { roles, zoneIds, isMasked } = sessions;
  const isOther = sql`(${roles}, ${zoneIds}, ${isMasked}) is distinct from
    (${sql.param(rights.roles, roles)}, ${sql.param(rights.zoneIds, zoneIds)}, ${rights.isMasked})`;
  const changed = db
    .update(sessions)
    .set(rights)
    .where(and(eq(sessions.id, id), isNull(sessions.endedAt), isOther));
  return (await changed.returning({ id: sessions.id })).length === 1;
}

export async function insertSession(
  tx: Queryable,
  session: Omit<typeof sessions.$inferInsert, "createdAt" | "lastUsedAt" | "endedAt">,
): Promise<void> {
  await tx.insert(sessions).values(session);
}

/** Stores that a session was used, at most once a minute. A session that is over stays over. */
export async function touchSession(db: Queryable, id: string): Promise<void> {
  await db
    .update(sessions)
    .set({ lastUsedAt: sql`now()` })
    .where(
      and(
        eq(sessions.id, id),
        sql`${idleAt} > now()`,
        sql`${sessions.lastUsedAt} < now() - interval '1 minute'`,
      ),
    );
}

/** Stores that a session's key was used, at most once a minute. */
export async function touchKeyOf(db: Queryable, sessionId: string): Promise<void> {
  const [session] = await db
    .select({ keyId: sessions.keyId })
    .from(sessions)
    .where(eq(sessions.id, sessionId));
  if (session !== undefined) await touchApiKey(db, session.keyId);
}

interface ListedSession {
  readonly id: string;
  readonly keyId: string;
  readonly keyName: string;
  readonly roles: string[];
  readonly userAgent: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date;
  readonly expiresAt: Date;
}

/** Returns the live sessions, of one key or of all, the one used last first. */
export function listSessions(
  db: Queryable,
  { keyId, limit }: { keyId: string | null; limit: number },
): Promise<ListedSession[]> {
  const { id, userAgent, createdAt, lastUsedAt } = sessions;
  return db
    .select({
      id,
      keyId: sessions.keyId,
      keyName: name,
      roles,
      userAgent,
      createdAt,
      lastUsedAt,
      expiresAt,
    })
    .from(sessions)
    .leftJoin(apiKeys, eq(apiKeys.keyId, sessions.keyId))
    .where(and(isLive, keyId === null ? undefined : eq(sessions.keyId, keyId)))
    .orderBy(desc(lastUsedAt), id)
    .limit(limit);
}

/** Ends sessions that have not ended yet and returns their ids. `of` is one session, or every session of a key. */
export async function endSessions(
  tx: Queryable,
  of: { readonly id: string; readonly keyId: string | null } | { readonly keyId: string },
): Promise<string[]> {
  const ofKey = of.keyId === null ? undefined : eq(sessions.keyId, of.keyId);
  const ended = await tx
    .update(sessions)
    .set({ endedAt: sql`now()`, idToken: null, claims: null })
    .where(and(isNull(sessions.endedAt), "id" in of ? eq(sessions.id, of.id) : undefined, ofKey))
    .returning({ id: sessions.id });
  return ended.map(({ id }) => id);
}

/** Returns the issuer's token of a session that has not ended; null for a key's session. */
export async function readIdToken(db: Queryable, id: string): Promise<string | null> {
  const [row] = await db.select({ idToken: sessions.idToken }).from(sessions).where(eq(sessions.id, id));
  return row?.idToken ?? null;
}

/** Inserts a token, which `isUsed` stores as used up already. Returns false if the token is known. */
export async function insertSignInToken(
  tx: Queryable,
  { lastsMs, isUsed, ...token }: { tokenHash: Buffer; keyId: string; lastsMs: number; isUsed?: true },
): Promise<boolean> {
  const expiresAt = sql`now() + make_interval(secs => ${lastsMs / 1_000}::double precision)`;
  const usedAt = isUsed === true ? sql`now()` : null;
  const insert = tx
    .insert(signInTokens)
    .values({ ...token, expiresAt, usedAt })
    .onConflictDoNothing();
  return (await insert.returning({ keyId: signInTokens.keyId })).length === 1;
}

/** Uses the token up and returns its key's id, or null if it is unknown, used, expired or of a dead key. Of two calls one gets it. */
export async function useSignInToken(tx: Queryable, tokenHash: Buffer): Promise<string | null> {
  const { rows } = await tx.execute<{ key_id: string }>(sql`
    update ${signInTokens} ${t} set ${names(t.usedAt)} = now()
    from ${apiKeys}
    where ${t.tokenHash} = ${tokenHash} and ${t.usedAt} is null and ${t.expiresAt} > now()
      and ${apiKeys.keyId} = ${t.keyId} and ${isKeyLive}
    returning ${t.keyId}`);
  return rows[0]?.key_id ?? null;
}

/** Returns the live key with this id or name; without one, the oldest live admin key. A feed key signs nobody in. */
export async function findSignInKey(db: Queryable, idOrName: string | null): Promise<string[]> {
  const isMeant =
    idOrName === null
      ? sql`'admin' = any(${apiKeys.roles})`
      : or(eq(apiKeys.keyId, idOrName), eq(apiKeys.name, idOrName));
  const rows = await db
    .select({ keyId: apiKeys.keyId })
    .from(apiKeys)
    .where(and(isKeyLive, isMeant, sql`${apiKeys.roles} <> '{feed}'`))
    .orderBy(apiKeys.id)
    .limit(idOrName === null ? 1 : 20);
  return rows.map(({ keyId }) => keyId);
}

/** Deletes what has been over for `keptMs`: sessions and links that sign in. */
export async function forgetSessions(db: Queryable, keptMs: number): Promise<void> {
  const before = sql`now() - make_interval(secs => ${keptMs / 1_000}::double precision)`;
  await db.delete(sessions).where(lt(sessions.lastUsedAt, before));
  await db.delete(signInTokens).where(lt(signInTokens.expiresAt, before));
}

export type SavedViewRow = typeof savedViews.$inferSelect;
type WantedView = Pick<SavedViewRow, "name" | "page" | "state" | "isShared">;

/** Returns the key's own views and the shared ones with ids after `afterId`, oldest first. */
export function listSavedViews(
  db: Queryable,
  { keyId, afterId, limit }: { keyId: string; afterId: number; limit: number },
): Promise<SavedViewRow[]> {
  return db
    .select()
    .from(savedViews)
    .where(and(gt(savedViews.id, afterId), or(eq(savedViews.keyId, keyId), eq(savedViews.isShared, true))))
    .orderBy(asc(savedViews.id))
    .limit(limit);
}

/** Inserts a view. Returns null if the key has `most` views already. */
export async function insertSavedView(
  tx: Queryable,
  view: WantedView & Pick<SavedViewRow, "keyId" | "createdBy">,
  most: number,
): Promise<SavedViewRow | null> {
  if ((await tx.$count(savedViews, eq(savedViews.keyId, view.keyId))) >= most) return null;
  const [row] = await tx.insert(savedViews).values(view).returning();
  return row ?? null;
}

/** Changes a view of this key. Returns null if the key has none with this id. */
export async function updateSavedView(
  db: Queryable,
  { id, keyId, ...view }: WantedView & Pick<SavedViewRow, "id" | "keyId">,
): Promise<SavedViewRow | null> {
  const [row] = await db
    .update(savedViews)
    .set({ ...view, changedAt: sql`now()` })
    .where(and(eq(savedViews.id, id), eq(savedViews.keyId, keyId)))
    .returning();
  return row ?? null;
}

/** Deletes a view of this key, or of any key if `keyId` is null. */
export async function deleteSavedView(
  db: Queryable,
  { id, keyId }: { id: number; keyId: string | null },
): Promise<boolean> {
  const deleted = await db
    .delete(savedViews)
    .where(and(eq(savedViews.id, id), keyId === null ? undefined : eq(savedViews.keyId, keyId)))
    .returning({ id: savedViews.id });
  return deleted.length === 1;
}
