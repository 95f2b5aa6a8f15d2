import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

/** A platform that shows an event under two times shows it this close together, or it is left to a person. */
const NEAR = sql.raw("interval '1 hour'");
/** Aliases outlive everything that the platform can still show. */
const KEPT = sql.raw("interval '10 days'");

/** An event that was stored under two times; times in epoch ms. */
export interface MergedDouble {
  readonly logId: string;
  readonly keptAt: number;
  readonly otherAt: number;
}

/**
 * Makes one event of each log id that is stored in this hour (epoch ms of its start) and under another time within an hour of
 * it. What the search has shown is kept, else the earlier one; the other time is noted, so that it is not stored again. Counts
 * and stale minutes follow.
 */
export async function mergeDoubles(
  tx: Queryable,
  zoneId: number,
  startsAt: number,
  atMs: number,
): Promise<MergedDouble[]> {
  const at = new Date(atMs);
  const [from, to] = [new Date(startsAt), new Date(startsAt + 3_600_000)];
  const { rows } = await tx.execute<{ logId: string; keptAt: number; otherAt: number }>(sql`
    with near as (
      select occurred_at, log_id, feature is null as is_unresolved from waf_events
      where zone_id = ${zoneId} and occurred_at >= ${from}::timestamptz - ${NEAR} and occurred_at < ${to}::timestamptz + ${NEAR}),
    ranked as (
      select log_id, occurred_at, row_number() over one as rank, first_value(occurred_at) over one as kept_at,
        bool_or(occurred_at >= ${from} and occurred_at < ${to}) over (partition by log_id) as is_asked,
        count(*) over (partition by log_id) as times
      from near window one as (partition by log_id order by is_unresolved, occurred_at)),
    doubled as (select * from ranked where times > 1 and rank > 1 and is_asked),
    removed as (
      delete from waf_events e using doubled d
      where e.zone_id = ${zoneId} and e.occurred_at = d.occurred_at and e.log_id = d.log_id
      returning e.rule_id, e.occurred_at),
    noted as (
      insert into event_aliases (zone_id, log_id, other_at, kept_at, noted_at)
      select ${zoneId}, log_id, occurred_at, kept_at, ${at} from doubled order by occurred_at, log_id
      on conflict (zone_id, other_at, log_id) do update set kept_at = excluded.kept_at),
    marked as (
      insert into dirty_buckets (zone_id, rule_id, minute)
      select ${zoneId}, rule, minute from (
        select distinct coalesce(rule_id, '') as rule, date_trunc('minute', occurred_at) as minute from removed) touched
      order by rule collate "C", minute
      on conflict (zone_id, rule_id, minute) do update set marks = dirty_buckets.marks + 1),
    counted as (
      update coverage_windows w set stored_count = w.stored_count - r.events
      from (select date_trunc('hour', occurred_at) as starts_at, count(*)::integer as events from removed group by 1) r
      where w.zone_id = ${zoneId} and w.starts_at = r.starts_at)
    select log_id as "logId", (extract(epoch from kept_at) * 1000)::float8 as "keptAt",
      (extract(epoch from occurred_at) * 1000)::float8 as "otherAt" from doubled order by occurred_at, log_id`);
  if (rows.length > 0)
    await tx.execute(
      sql`delete from event_aliases where zone_id = ${zoneId} and other_at < ${at}::timestamptz - ${KEPT}`,
    );
  return rows;
}
