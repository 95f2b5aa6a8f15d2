/** Replaces addresses by pseudonyms, and knows the key that was used. */
import { and, between, eq, isNull, like, ne, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { wafEvents } from "../schema/events.ts";
import { pseudonymisedDays, pseudonymKeys } from "../schema/privacy.ts";
import { leases } from "../schema/service.ts";

const e = alias(wafEvents, "e");

/** Epoch ms, both ends included. */
export interface EventSpan {
  readonly zoneId: number;
  readonly from: number;
  readonly to: number;
}

/** Returns the zones with events in a day (epoch ms, half-open), without reading all of the events. */
export async function listZonesOf(
  db: Queryable,
  { from, to }: { from: number; to: number },
): Promise<number[]> {
  const { rows } = await db.execute<{ zoneId: number }>(sql`
    with recursive zones as (
      (select ${e.zoneId} from ${wafEvents} ${e} where ${inTime(from, to)} order by ${e.zoneId} limit 1)
      union all
      select (select ${e.zoneId} from ${wafEvents} ${e} where ${e.zoneId} > z.zone_id and ${inTime(from, to)}
        order by ${e.zoneId} limit 1)
      from zones z where z.zone_id is not null)
    select zone_id as "zoneId" from zones where zone_id is not null`);
  return rows.map(({ zoneId }) => zoneId);
}

function inTime(from: number, to: number) {
  return sql`${e.occurredAt} >= ${new Date(from)} and ${e.occurredAt} < ${new Date(to)}`;
}

/** Returns the end of about `limit` events of a zone from `from` on and before `to`, or null if there are fewer. */
export async function findBatchEnd(
  db: Queryable,
  { zoneId, from, to }: EventSpan,
  limit: number,
): Promise<number | null> {
  const [row] = await db
    .select({ at: epochMs(e.occurredAt) })
    .from(e)
    .where(and(eq(e.zoneId, zoneId), inTime(from, to)))
    .orderBy(e.occurredAt, e.logId)
    .offset(limit - 1)
    .limit(1);
  return row?.at ?? null;
}

export async function listAddresses(db: Queryable, { zoneId, from, to }: EventSpan): Promise<string[]> {
  const rows = await db
    .selectDistinct({ ip: sql<string>`${e.ip}` })
    .from(e)
    .where(and(eq(e.zoneId, zoneId), between(e.occurredAt, new Date(from), new Date(to)), ne(e.ip, "")));
  return rows.map(({ ip }) => ip);
}

/**
 * Replaces addresses by pseudonyms and drops the ids of all requests. Returns how many events changed. A second call changes
 * nothing.
 */
export async function replaceAddressesOf(
  tx: Queryable,
  { zoneId, from, to }: EventSpan,
  pseudonyms: ReadonlyMap<string, string>,
): Promise<number> {
  const replaced = await tx
    .update(e)
    .set({ ip: sql`p.pseudonym`, requestId: "" })
    .from(sql`unnest(${sql.param([...pseudonyms.keys()])}::text[], ${sql.param([...pseudonyms.values()])}::text[])
      as p(ip, pseudonym)`)
    .where(
      sql`${e.zoneId} = ${zoneId} and ${e.occurredAt} between ${new Date(from)} and ${new Date(to)} and ${e.ip} = p.ip`,
    );
  const dropped = await tx
    .update(e)
    .set({ requestId: "" })
    .where(
      sql`${e.zoneId} = ${zoneId} and ${e.occurredAt} between ${new Date(from)} and ${new Date(to)} and ${e.requestId} <> ''`,
    );
  return (replaced.rowCount ?? 0) + (dropped.rowCount ?? 0);
}

export async function readDoneDays(db: Queryable): Promise<ReadonlySet<string>> {
  const rows = await db.select({ day: pseudonymisedDays.day }).from(pseudonymisedDays);
  return new Set(rows.map(({ day }) => day));
}

export async function markDayDone(
  db: Queryable,
  day: { readonly day: string; readonly events: number; readonly keyId: string },
): Promise<void> {
  await db.insert(pseudonymisedDays).values(day).onConflictDoNothing();
}

/** Returns whether a pass over this day's list is in progress. */
export async function isDayWalked(db: Queryable, day: string): Promise<boolean> {
  const rows = await db
    .select({ name: leases.name })
    .from(leases)
    .where(and(like(leases.name, `walk-days.%.${day}`), sql`${leases.expiresAt} > now()`))
    .limit(1);
  return rows.length > 0;
}

/** Returns the fingerprint of the key in use; null before the first key. */
export async function readKeyId(db: Queryable): Promise<string | null> {
  const [row] = await db
    .select({ keyId: pseudonymKeys.keyId })
    .from(pseudonymKeys)
    .where(isNull(pseudonymKeys.retiredAt));
  return row?.keyId ?? null;
}

/**
 * Registers the key if none is in use. If calls run at once, one of them registers its key. Returns the fingerprint of
 * the key in use.
 */
export async function registerKeyId(db: Queryable, keyId: string): Promise<string | null> {
  await db.insert(pseudonymKeys).values({ keyId }).onConflictDoNothing();
  return readKeyId(db);
}

/** Puts another key in use. A key that was retired before may return. */
export async function replaceKeyId(tx: Queryable, keyId: string, nowMs: number): Promise<void> {
  const now = new Date(nowMs);
  await tx.update(pseudonymKeys).set({ retiredAt: now }).where(isNull(pseudonymKeys.retiredAt));
  await tx
    .insert(pseudonymKeys)
    .values({ keyId, adoptedAt: now })
    .onConflictDoUpdate({
      target: pseudonymKeys.keyId,
      set: { retiredAt: null, adoptedAt: now, missingAt: null, missingBecause: null },
    });
}

/** Records that a running process lacks the key in use. */
export async function recordMissingKey(db: Queryable, because: string): Promise<void> {
  await db
    .update(pseudonymKeys)
    .set({ missingAt: sql`now()`, missingBecause: because })
    .where(isNull(pseudonymKeys.retiredAt));
}

/** Returns the problem with the key that a process has reported within the last `sinceMs`, or null. */
export async function readKeyProblem(db: Queryable, sinceMs: number): Promise<string | null> {
  const [row] = await db
    .select({ because: pseudonymKeys.missingBecause })
    .from(pseudonymKeys)
    .where(
      sql`${pseudonymKeys.retiredAt} is null and ${pseudonymKeys.missingAt} > now() - make_interval(secs => ${sinceMs / 1_000})`,
    );
  return row?.because ?? null;
}
