/** The state of the service: what is stored, what is open and how it grows. */
import { count, getTableName, ne, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { UNRESOLVED_STATES } from "#model/kinds.ts";
import { sumValidBytes } from "../archive/archive-files.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { alerts } from "../schema/alerts.ts";
import { rawBlocks } from "../schema/archive.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { wafEvents } from "../schema/events.ts";
import { quarantinedEntries } from "../schema/ingest.ts";
import { notifications } from "../schema/notifications.ts";
import { spikes } from "../schema/spikes.ts";

const s = alias(spikes, "s");
const a = alias(alerts, "a");
const w = alias(coverageWindows, "w");
const n = alias(notifications, "n");
const e = alias(wafEvents, "e");
const q = alias(quarantinedEntries, "q");

interface ZoneStatus {
  readonly zoneId: number;
  /** Number of stored events in the requested hours. */
  readonly events: number;
  /** Epoch ms; null before the first event. */
  readonly newestAt: number | null;
  /** End of the span that the search route has covered, in the hour that is farthest; epoch ms. */
  readonly searchedThrough: number | null;
  readonly quarantined: number;
}

interface ServiceStatus {
  readonly zones: readonly ZoneStatus[];
  readonly spikesOpen: number;
  readonly alertsFiring: number;
  readonly notificationsPending: number;
}

/** Returns what is stored of the hours from `fromMs` on, and the unfinished work. */
export async function readServiceStatus(
  db: Queryable,
  zoneIds: readonly number[],
  fromMs: number,
): Promise<ServiceStatus> {
  const from = new Date(fromMs);
  const zones = await db.execute<{ [Key in keyof ZoneStatus]: ZoneStatus[Key] }>(sql`
    select zone_id as "zoneId",
      coalesce((select sum(${w.storedCount}) from ${coverageWindows} ${w}
        where ${w.zoneId} = z.zone_id and ${w.startsAt} >= ${from}), 0)::float8 as events,
      (select ${epochMs(sql`max(${e.occurredAt})`)} from ${wafEvents} ${e}
        where ${e.zoneId} = z.zone_id and ${e.occurredAt} >= ${from}) as "newestAt",
      (select ${epochMs(w.searchedThrough)} from ${coverageWindows} ${w} where ${w.zoneId} = z.zone_id
        and ${w.searchedThrough} is not null order by ${w.startsAt} desc limit 1) as "searchedThrough",
      (select count(*) from ${quarantinedEntries} ${q} where ${q.zoneId} = z.zone_id)::float8 as quarantined
    from unnest(${sql.param([...zoneIds])}::integer[]) as z(zone_id) order by 1`);
  const work = await db.execute<{ spikes: number; alerts: number; notifications: number }>(sql`
    select (select count(*) from ${spikes} ${s} where ${s.closedAt} is null)::integer as spikes,
      (select count(*) from ${alerts} ${a} where ${a.state} <> 'resolved')::integer as alerts,
      (select count(*) from ${notifications} ${n} where ${n.state} in ('pending', 'sending'))::integer as notifications`);
  const [counts] = work.rows;
  return {
    zones: zones.rows,
    spikesOpen: counts?.spikes ?? 0,
    alertsFiring: counts?.alerts ?? 0,
    notificationsPending: counts?.notifications ?? 0,
  };
}

/** Returns how many events of these zones are stored in the hours from `fromMs` on. */
export async function readStoredEvents(
  db: Queryable,
  zoneIds: readonly number[],
  fromMs: number,
): Promise<number> {
  const [row] = await db
    .select({ events: sql<number>`coalesce(sum(${w.storedCount}), 0)::float8` })
    .from(w)
    .where(
      sql`${w.zoneId} = any(${sql.param([...zoneIds])}::integer[]) and ${w.startsAt} >= ${new Date(fromMs)}`,
    );
  return row?.events ?? 0;
}

const member = alias(spikes, "member");

const owner = alias(alerts, "owner");

export interface OpenWork {
  /** Null: the work that belongs to no single zone. */
  readonly zoneId: number | null;
  readonly spikesOpen: number;
  /** Without the alerts of rules that are part of the alert of another spike, which notifies for them. */
  readonly alertsFiring: number;
  readonly alertsAcknowledged: number;
  readonly notificationsPending: number;
}

/** Returns the open work of each of these zones, in their order. */
export async function readOpenWork(db: Queryable, zoneIds: readonly (number | null)[]): Promise<OpenWork[]> {
  const { rows } = await db.execute<{ [Key in keyof OpenWork]: OpenWork[Key] }>(sql`
    select z.zone_id as "zoneId",
      (select count(*) from ${spikes} ${s}
        where ${s.zoneId} = z.zone_id and ${s.closedAt} is null)::integer as "spikesOpen",
      count(${a.id}) filter (where ${a.state} = 'firing')::integer as "alertsFiring",
      count(${a.id}) filter (where ${a.state} = 'acknowledged')::integer as "alertsAcknowledged",
      (select count(*) from ${notifications} ${n} join ${alerts} ${owner} on ${owner.id} = ${n.alertId}
        where ${owner.zoneId} is not distinct from z.zone_id
          and ${n.state} in ('pending', 'sending'))::integer as "notificationsPending"
    from unnest(${sql.param([...zoneIds])}::integer[]) with ordinality as z(zone_id, place)
    left join ${alerts} ${a} on ${a.zoneId} is not distinct from z.zone_id and ${a.state} <> 'resolved'
      and not exists (select from ${spikes} ${member} where ${member.id} = ${a.spikeId} and ${member.memberOf} is not null)
    group by z.zone_id, z.place order by z.place`);
  return rows;
}

interface OpenAlerts {
  readonly state: (typeof UNRESOLVED_STATES)[number];
  readonly kind: string;
  readonly count: number;
}

/** Returns how many alerts are not resolved, by state and kind. */
export function countOpenAlerts(db: Queryable): Promise<readonly OpenAlerts[]> {
  const { state, kind } = alerts;
  return db
    .select({ state: sql<OpenAlerts["state"]>`${state}`, kind, count: count() })
    .from(alerts)
    .where(ne(state, "resolved"))
    .groupBy(state, kind)
    .orderBy(state, kind);
}

/**
 * Returns by zone how many hours from `fromMs` on are gaps. An hour with one of the reasons in `unwatched` does not
 * count.
 */
export async function countGapHours(
  db: Queryable,
  { fromMs, unwatched }: { readonly fromMs: number; readonly unwatched: readonly string[] },
): Promise<ReadonlyMap<number, number>> {
  const { zoneId, startsAt, state, gapReason } = coverageWindows;
  const rows = await db
    .select({ zoneId, hours: count() })
    .from(coverageWindows)
    .where(
      sql`${state} = 'gap' and ${startsAt} >= ${new Date(fromMs)}
        and ${gapReason} <> all(${sql.param([...unwatched])}::text[])`,
    )
    .groupBy(zoneId);
  return new Map(rows.map(({ zoneId: zone, hours }) => [zone, hours]));
}

/** How much the data of the server grows per day, in bytes. */
export interface DailyGrowth {
  /** The largest of the last days: events and records, with their indexes. */
  readonly dayBytes: number;
  /** Bytes that the server's write-ahead log may still add before it reuses old files. */
  readonly logBytes: number;
}

const DAYS = 4;

/** Returns the growth. The role must be able to list the write-ahead log's files. */
export async function readDailyGrowth(db: Queryable, nowMs: number): Promise<DailyGrowth> {
  const { rows } = await db.execute<{ logBytes: number }>(sql`
    select greatest(pg_size_bytes(current_setting('max_wal_size')) - (select sum(size) from pg_ls_waldir()), 0)::float8
      as "logBytes"`);
  return { dayBytes: await readDayBytes(db, nowMs), logBytes: rows[0]?.logBytes ?? 0 };
}

/** Returns `dayBytes`, computed from the partitions of the last days, so that no history of sizes is needed. */
export async function readDayBytes(db: Queryable, nowMs: number): Promise<number> {
  const days = Array.from({ length: DAYS }, (_, n) =>
    new Date(nowMs - n * 86_400_000).toISOString().slice(0, 10).replaceAll("-", ""),
  );
  const { rows } = await db.execute<{ bytes: number }>(sql`
    select coalesce((select max(bytes) from (
        select sum(pg_total_relation_size(c.oid)) as bytes
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent in (${getTableName(wafEvents)}::regclass, ${getTableName(rawBlocks)}::regclass)
          and right(c.relname, 8) = any (${sql.param(days)}::text[])
        group by right(c.relname, 8)) d), 0)::float8 as "bytes"`);
  return rows[0]?.bytes ?? 0;
}

/** Sizes of everything that is stored, in bytes. */
export interface StoredBytes {
  readonly databaseBytes: number;
  /** The records in the database, which are a part of it. */
  readonly recordBytes: number;
  readonly archiveBytes: number;
}

export async function readStoredBytes(db: Queryable): Promise<StoredBytes> {
  const { rows } = await db.execute<{ databaseBytes: number; recordBytes: number }>(sql`
    select pg_database_size(current_database())::float8 as "databaseBytes",
      (select coalesce(sum(pg_total_relation_size(i.inhrelid)), 0) from pg_inherits i
        where i.inhparent = ${getTableName(rawBlocks)}::regclass)::float8 as "recordBytes"`);
  const { databaseBytes = 0, recordBytes = 0 } = rows[0] ?? {};
  return { databaseBytes, recordBytes, archiveBytes: await sumValidBytes(db) };
}
