import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { pseudonymisedDays } from "../schema/pseudonymised-days.ts";

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
      (select zone_id from waf_events where ${inTime(from, to)} order by zone_id limit 1)
      union all
      select (select e.zone_id from waf_events e where e.zone_id > z.zone_id and ${inTime(from, to)}
        order by e.zone_id limit 1)
      from zones z where z.zone_id is not null)
    select zone_id as "zoneId" from zones where zone_id is not null`);
  return rows.map(({ zoneId }) => zoneId);
}

function inTime(from: number, to: number) {
  return sql`occurred_at >= ${new Date(from)} and occurred_at < ${new Date(to)}`;
}

/** Returns the end of about `limit` events of a zone from `from` on and before `to`, or null if there are fewer. */
export async function findBatchEnd(
  db: Queryable,
  { zoneId, from, to }: EventSpan,
  limit: number,
): Promise<number | null> {
  const { rows } = await db.execute<{ at: number }>(sql`
    select (extract(epoch from occurred_at) * 1000)::float8 as at from waf_events
    where zone_id = ${zoneId} and ${inTime(from, to)}
    order by occurred_at, log_id offset ${limit - 1} limit 1`);
  return rows[0]?.at ?? null;
}

export async function listAddresses(db: Queryable, { zoneId, from, to }: EventSpan): Promise<string[]> {
  const { rows } = await db.execute<{ ip: string }>(sql`
    select distinct ip from waf_events
    where zone_id = ${zoneId} and occurred_at between ${new Date(from)} and ${new Date(to)} and ip <> ''`);
  return rows.map(({ ip }) => ip);
}

/** Replaces addresses by pseudonyms. Returns how many events changed. A second call changes nothing. */
export async function replaceAddressesOf(
  tx: Queryable,
  { zoneId, from, to }: EventSpan,
  pseudonyms: ReadonlyMap<string, string>,
): Promise<number> {
  const replaced = await tx.execute(sql`
    update waf_events e set ip = p.pseudonym
    from unnest(${sql.param([...pseudonyms.keys()])}::text[], ${sql.param([...pseudonyms.values()])}::text[])
      as p(ip, pseudonym)
    where e.zone_id = ${zoneId} and e.occurred_at between ${new Date(from)} and ${new Date(to)} and e.ip = p.ip`);
  return replaced.rowCount ?? 0;
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
  const { rows } = await db.execute(sql`
    select from leases where name like ${`walk-days.%.${day}`} and expires_at > now() limit 1`);
  return rows.length > 0;
}
