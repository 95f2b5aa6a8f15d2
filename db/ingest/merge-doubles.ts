import { sql } from "drizzle-orm";
import { HOUR_MS } from "#lib/units.ts";
import type { Queryable } from "../client.ts";

/** Two times of one event that are this close together are merged. */
const NEAR = sql.raw("interval '1 hour'");
/** The same, if only the list has shown one of the times, or if the latest search does not show one of them any more. */
const FAR = sql.raw("interval '25 hours'");

/** An event that was stored under two times; times in epoch ms. */
export interface MergedDouble {
  readonly logId: string;
  readonly keptAt: number;
  readonly otherAt: number;
}

/**
 * Merges the rows of each log id that is stored both in this hour (epoch ms of its start) and under another time. The
 * other time may be an hour away, or a day if only the list has shown the event in this hour or the latest search does
 * not show it there. The time that the search shows is kept. The other time is stored as an alias, so that the list does
 * not store the event again. If only the list has shown the event, no time is known to be right and nothing is merged.
 * Counts and stale minutes are updated.
 */
export async function mergeDoubles(
  tx: Queryable,
  zoneId: number,
  startsAt: number,
  atMs: number,
): Promise<MergedDouble[]> {
  const at = new Date(atMs);
  const [from, to] = [new Date(startsAt), new Date(startsAt + HOUR_MS)];
  const { rows } = await tx.execute<{ logId: string; keptAt: number; otherAt: number }>(sql`
    with lacking as (
      select occurred_at, log_id from event_revisions
      where zone_id = ${zoneId} and occurred_at >= ${from} and occurred_at < ${to} and field = 'withdrawn'),
    near as (
      select occurred_at, log_id, feature is null as is_unresolved from waf_events
      where zone_id = ${zoneId} and occurred_at >= ${from}::timestamptz - ${NEAR} and occurred_at < ${to}::timestamptz + ${NEAR}
      union
      select occurred_at, log_id, feature is null from waf_events
      where zone_id = ${zoneId} and occurred_at >= ${from}::timestamptz - ${FAR} and occurred_at < ${to}::timestamptz + ${FAR}
        and log_id in (select log_id from waf_events
          where zone_id = ${zoneId} and occurred_at >= ${from} and occurred_at < ${to} and feature is null
          union select log_id from lacking)),
    ranked as (
      select log_id, occurred_at, row_number() over one as rank, first_value(occurred_at) over one as kept_at,
        bool_or(occurred_at >= ${from} and occurred_at < ${to}) over (partition by log_id) as is_asked,
        count(*) over (partition by log_id) as times, bool_or(not is_unresolved) over (partition by log_id) as is_known
      from near window one as (partition by log_id order by is_unresolved,
        (occurred_at, log_id) in (select occurred_at, log_id from lacking), occurred_at)),
    doubled as (select * from ranked where times > 1 and rank > 1 and is_asked and is_known),
    removed as (
      delete from waf_events e using doubled d
      where e.zone_id = ${zoneId} and e.occurred_at = d.occurred_at and e.log_id = d.log_id
      returning e.rule_id, e.occurred_at),
    noted as (
      insert into event_aliases (zone_id, log_id, other_at, kept_at, noted_at)
      select ${zoneId}, log_id, occurred_at, kept_at, ${at} from doubled order by occurred_at, log_id
      on conflict (zone_id, other_at, log_id) do update set kept_at = excluded.kept_at),
    ${countRemoved(zoneId)}
    select log_id as "logId", (extract(epoch from kept_at) * 1000)::float8 as "keptAt",
      (extract(epoch from occurred_at) * 1000)::float8 as "otherAt" from doubled order by occurred_at, log_id`);
  return rows;
}

/** Two steps after a step `removed` (rule_id, occurred_at of deleted events): buckets to count again, hours that hold less. */
export function countRemoved(zoneId: number) {
  return sql`marked as (
      insert into dirty_buckets (zone_id, rule_id, minute)
      select ${zoneId}, rule, minute from (
        select distinct coalesce(rule_id, '') as rule, date_trunc('minute', occurred_at) as minute from removed) touched
      order by rule collate "C", minute
      on conflict (zone_id, rule_id, minute) do update set marks = dirty_buckets.marks + 1),
    counted as (
      update coverage_windows w set stored_count = w.stored_count - r.events
      from (select date_trunc('hour', occurred_at) as starts_at, count(*)::integer as events from removed group by 1) r
      where w.zone_id = ${zoneId} and w.starts_at = r.starts_at)`;
}

/** A platform that rounds times shows an event this close to its own time. */
const ROUNDED = sql.raw("interval '1 second'");

/**
 * Resolves staged events whose log id is stored within a second of their time. The search's time is kept, else the
 * stored one. The other time is stored as an alias. A resolved event is removed from the staged or from the stored
 * events.
 */
export async function settleStagedDoubles(tx: Queryable, zoneId: number, atMs: number): Promise<void> {
  const at = new Date(atMs);
  await tx.execute(sql`
    with doubles as (
      select s.log_id, s.occurred_at as staged_at, e.occurred_at as stored_at,
        s.feature is not null and e.feature is null as is_replaced
      from staged_events s cross join lateral (
        select occurred_at, feature from waf_events e
        where e.zone_id = ${zoneId} and e.occurred_at between s.occurred_at - ${ROUNDED} and s.occurred_at + ${ROUNDED}
          and e.log_id = s.log_id and e.occurred_at <> s.occurred_at limit 1) e
      where not exists (select from waf_events k
        where k.zone_id = ${zoneId} and k.occurred_at = s.occurred_at and k.log_id = s.log_id)),
    noted as (
      insert into event_aliases (zone_id, log_id, other_at, kept_at, noted_at)
      select distinct on (other_at, log_id) ${zoneId}, log_id, other_at, kept_at, noted_at from (
        select log_id, case when is_replaced then stored_at else staged_at end as other_at,
          case when is_replaced then staged_at else stored_at end as kept_at, ${at}::timestamptz as noted_at
        from doubles) as named order by other_at, log_id
      on conflict (zone_id, other_at, log_id) do nothing),
    unstaged as (
      delete from staged_events s using doubles d
      where not d.is_replaced and s.log_id = d.log_id and s.occurred_at = d.staged_at),
    removed as (
      delete from waf_events e using doubles d
      where d.is_replaced and e.zone_id = ${zoneId} and e.occurred_at = d.stored_at and e.log_id = d.log_id
      returning e.rule_id, e.occurred_at),
    ${countRemoved(zoneId)}
    select`);
}

/**
 * Stores an alias for every entry of a list that lies outside the list's day (epoch ms of its start) and whose log id
 * is stored within the day: the entry's time is wrong, and the event is not stored again. Returns the number of such
 * entries. Reads every log id of the day.
 */
export async function noteWrongTimes(
  tx: Queryable,
  zoneId: number,
  { dayStart, atMs }: { dayStart: number; atMs: number },
  entries: readonly { readonly occurredAt: number; readonly logId: string }[],
): Promise<number> {
  const times = sql.param(entries.map(({ occurredAt }) => new Date(occurredAt)));
  const ids = sql.param(entries.map(({ logId }) => logId));
  const { rowCount } = await tx.execute(sql`
    insert into event_aliases (zone_id, log_id, other_at, kept_at, noted_at)
    select distinct on (g.at, g.log_id) ${zoneId}, g.log_id, g.at, e.occurred_at, ${new Date(atMs)}::timestamptz
    from unnest(${times}::timestamptz[], ${ids}::text[]) as g(at, log_id)
    join waf_events e on e.zone_id = ${zoneId} and e.log_id = g.log_id
      and e.occurred_at >= ${new Date(dayStart)} and e.occurred_at < ${new Date(dayStart + 86_400_000)}
    order by g.at, g.log_id
    on conflict (zone_id, other_at, log_id) do update set kept_at = excluded.kept_at`);
  return rowCount ?? 0;
}

/**
 * Returns the log ids that were shown in [fromMs, toMs) in another hour than the one in which their event is stored;
 * epoch ms of the hours' starts.
 */
export async function readMovedIds(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<{ logId: string; shownIn: number; storedIn: number }[]> {
  const hourOf = (column: string) => sql.raw(`date_trunc('hour', ${column}, 'UTC')`);
  const { rows } = await db.execute<{ logId: string; shownIn: number; storedIn: number }>(sql`
    select log_id as "logId", (extract(epoch from ${hourOf("other_at")}) * 1000)::float8 as "shownIn",
      (extract(epoch from ${hourOf("kept_at")}) * 1000)::float8 as "storedIn"
    from event_aliases where zone_id = ${zoneId} and other_at >= ${new Date(fromMs)} and other_at < ${new Date(toMs)}
      and ${hourOf("other_at")} <> ${hourOf("kept_at")}`);
  return rows;
}
