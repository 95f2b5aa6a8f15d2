import { sql } from "drizzle-orm";
import { HOUR_MS } from "#lib/units.ts";
import type { Queryable } from "../client.ts";
import { FILLED } from "./event-rows.ts";

/** A look of the search must show another value twice, this far apart, before it replaces the stored value. */
const CONFIRM = sql.raw("interval '10 minutes'");

const isFullAddress = (ip: string) => `(${ip} <> '' and ${ip} not like '%*%' and ${ip} not like 'anon-%')`;

/**
 * Returns SQL for whether `given` shows another value than `known` has. Only the search resolves every dimension, so only
 * rows of the search count. An empty, masked or pseudonymous value contradicts nothing, and an erased event stays erased.
 */
export function contradictsOf(known: string, given: string): string {
  const differs = FILLED.map((name) => `(${given}.${name} <> '' and ${known}.${name} <> ${given}.${name})`);
  const ips = [`${known}.ip`, `${given}.ip`].map(isFullAddress).join(" and ");
  return `(${isComparable(known, given)} and (${differs.join(" or ")} or (${ips} and ${known}.ip <> ${given}.ip)))`;
}

function isComparable(known: string, given: string): string {
  return `${given}.feature is not null and ${known}.feature is not null and ${known}.ip is distinct from 'erased'`;
}

/**
 * Compares the staged rows of the search with the stored events. A value that differs is noted. A look that shows it
 * again at least ten minutes later changes the event, whose buckets are then counted again. A look that shows the stored
 * value deletes the note. Returns the number of changed events. Times in epoch ms.
 */
export async function reviseEvents(
  tx: Queryable,
  zoneId: number,
  { fromMs, toMs, atMs }: { fromMs: number; toMs: number; atMs: number },
): Promise<number> {
  const at = sql`${new Date(atMs)}::timestamptz`;
  const inTime = sql`occurred_at between ${new Date(fromMs)} and ${new Date(toMs)}`;
  const values = [...FILLED, "ip"].map((name) => `('${name}', e.${name}, s.${name})`).join(", ");
  const isUsable = sql.raw(
    `v.given <> '' and (v.field <> 'ip' or (${isFullAddress("v.known")} and ${isFullAddress("v.given")}))`,
  );
  const revised = ["ip", ...FILLED].map((name) => `${name} = coalesce(c.given->>'${name}', e.${name})`);
  const { rows } = await tx.execute<{ revised: number }>(sql`
    with shown as materialized (
      select e.occurred_at, e.log_id, v.field, v.known, v.given
      from (select * from staged_events order by zone_id, occurred_at, log_id) s
      cross join lateral (
        select * from waf_events e
        where e.zone_id = ${zoneId} and e.occurred_at = s.occurred_at and e.log_id = s.log_id and e.${inTime}
          and ${sql.raw(isComparable("e", "s"))}
        limit 1 for update) e
      cross join lateral (values ${sql.raw(values)}) as v(field, known, given)
      where ${isUsable}),
    noted as materialized (
      select occurred_at, log_id, field, after, seen_at from event_revisions
      where zone_id = ${zoneId} and ${inTime} and accepted_at is null and field <> 'withdrawn'),
    confirmed as (
      update event_revisions r set accepted_at = ${at}, before = s.known
      from shown s join noted n using (occurred_at, log_id, field)
      where s.given = n.after and s.given <> s.known and n.seen_at <= ${at} - ${CONFIRM}
        and r.zone_id = ${zoneId} and r.occurred_at = n.occurred_at and r.log_id = n.log_id and r.field = n.field
        and r.seen_at = n.seen_at
      returning r.occurred_at, r.log_id, r.field, r.after),
    dismissed as (
      delete from event_revisions r using shown s join noted n using (occurred_at, log_id, field)
      where s.given <> n.after and r.zone_id = ${zoneId} and r.occurred_at = n.occurred_at and r.log_id = n.log_id
        and r.field = n.field and r.seen_at = n.seen_at),
    entered as (
      insert into event_revisions (zone_id, occurred_at, log_id, field, seen_at, before, after)
      select ${zoneId}, occurred_at, log_id, field, ${at}, known, given from shown s
      where given <> known and not exists (select from noted n
        where n.occurred_at = s.occurred_at and n.log_id = s.log_id and n.field = s.field and n.after = s.given)
      on conflict do nothing),
    changed as (
      select occurred_at, log_id, jsonb_object_agg(field, after) as given from confirmed group by 1, 2),
    revised as (
      update waf_events e set ${sql.raw(revised.join(", "))}
      from changed c
      where e.zone_id = ${zoneId} and e.occurred_at = c.occurred_at and e.log_id = c.log_id and e.${inTime}
      returning e.occurred_at, e.log_id, e.rule_id),
    marked as (
      insert into dirty_buckets (zone_id, rule_id, minute)
      select ${zoneId}, rule, minute from (
        select distinct rule, date_trunc('minute', r.occurred_at) as minute
        from revised r join shown s using (occurred_at, log_id)
        cross join lateral unnest(array[r.rule_id, case when s.field = 'rule_id' then s.known else r.rule_id end]) as rule
        where rule is not null) touched
      order by rule collate "C", minute
      on conflict (zone_id, rule_id, minute) do update set marks = dirty_buckets.marks + 1)
    select count(*)::integer as revised from revised`);
  return rows[0]?.revised ?? 0;
}

/** Returns the hours (epoch ms of their starts) with a noted value, and when the latest of them was first shown. */
export async function readContested(
  db: Queryable,
  zoneId: number,
  fromMs: number,
): Promise<Map<number, number>> {
  const { rows } = await db.execute<{ hour: number; seen: number }>(sql`
    select (extract(epoch from date_trunc('hour', occurred_at, 'UTC')) * 1000)::float8 as hour,
      (extract(epoch from max(seen_at)) * 1000)::float8 as seen
    from event_revisions
    where zone_id = ${zoneId} and occurred_at >= ${new Date(fromMs)} and accepted_at is null and field <> 'withdrawn'
    group by 1`);
  return new Map(rows.map(({ hour, seen }) => [hour, seen]));
}

/**
 * Notes the events of one hour that a search at `atMs` did not show, and forgets the notes of those that it showed. An
 * event that was withdrawn and is shown again is no longer withdrawn.
 */
export async function noteLacking(
  tx: Queryable,
  zoneId: number,
  { startsAt, atMs, logIds }: { startsAt: number; atMs: number; logIds: readonly string[] },
): Promise<void> {
  const isIn = sql`zone_id = ${zoneId} and ${inHour(startsAt)}`;
  const lacking = sql`${sql.param([...logIds])}::text[]`;
  await tx.execute(sql`
    delete from event_revisions where ${isIn} and field = 'withdrawn' and log_id <> all(${lacking})`);
  if (logIds.length === 0) return;
  await tx.execute(sql`
    insert into event_revisions (zone_id, occurred_at, log_id, field, seen_at)
    select zone_id, occurred_at, log_id, 'withdrawn', ${new Date(atMs)} from waf_events e
    where ${isIn} and log_id = any(${lacking}) and not exists (select from event_revisions r
      where r.zone_id = e.zone_id and r.occurred_at = e.occurred_at and r.log_id = e.log_id and r.field = 'withdrawn')
    on conflict do nothing`);
}

/**
 * Returns the other hours (epoch ms of their starts) that lack one of these events of an hour: the event has moved to this
 * hour, and has to be merged.
 */
export async function readMovedFrom(
  tx: Queryable,
  zoneId: number,
  { startsAt, logIds }: { startsAt: number; logIds: readonly string[] },
): Promise<number[]> {
  const { rows } = await tx.execute<{ hour: number }>(sql`
    select distinct (extract(epoch from date_trunc('hour', occurred_at, 'UTC')) * 1000)::float8 as hour
    from event_revisions where zone_id = ${zoneId} and field = 'withdrawn' and not (${inHour(startsAt)})
      and log_id = any(${sql.param([...logIds])}::text[])`);
  return rows.map(({ hour }) => hour);
}

/** Accepts that the noted events of these sealed hours (epoch ms of their starts) are withdrawn. */
export async function acceptWithdrawn(
  tx: Queryable,
  zoneId: number,
  hours: readonly number[],
  atMs: number,
): Promise<void> {
  for (const startsAt of hours)
    await tx.execute(sql`
      update event_revisions set accepted_at = ${new Date(atMs)}
      where zone_id = ${zoneId} and ${inHour(startsAt)} and field = 'withdrawn' and accepted_at is null`);
}

function inHour(startsAt: number) {
  return sql`occurred_at >= ${new Date(startsAt)} and occurred_at < ${new Date(startsAt + HOUR_MS)}`;
}
