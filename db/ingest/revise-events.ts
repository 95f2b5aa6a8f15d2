import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { HOUR_MS } from "#lib/units.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { eventRevisions, wafEvents } from "../schema/events.ts";
import { dirtyBuckets } from "../schema/ingest.ts";
import {
  FILLED,
  type Fillable,
  fillOf,
  lacksOf,
  learnOf,
  learnsOf,
  markStale,
  unmasksOf,
} from "./event-rows.ts";

const d = alias(dirtyBuckets, "d");
const r = alias(eventRevisions, "r");
const e = alias(wafEvents, "e");
/** Staged events: a temporary table with the columns of `waf_events`. */
const s = alias(wafEvents, "s");
const KEY = names(wafEvents.zoneId, wafEvents.occurredAt, wafEvents.logId);
const IS_NOTED = sql`${r.occurredAt} = n.occurred_at and ${r.logId} = n.log_id and ${r.field} = n.field
  and ${r.seenAt} = n.seen_at`;

/**
 * Returns the statement that fills rows that lack a value, and says whether a row shows another value than is stored, or
 * whether that was noted before. A DO UPDATE on the insert would lock and log every known
 * row; this statement writes only rows that lack something. A rule or action that becomes known moves the event from
 * one count to another, and every other value is forwarded, so both minutes are stale; of a row that gains only facts,
 * none is. Known rows are looked up by key, one after the other (`limit`
 * keeps the lateral from becoming a join): for a partition that was never analyzed the planner would compare every
 * row of the page with every row of its hour.
 */
export function fillStatement(zoneId: number, fromMs: number, toMs: number): SQL {
  const m = alias(wafEvents, "m");
  const [from, to] = [sql`to_timestamp(${fromMs / 1_000})`, sql`to_timestamp(${toMs / 1_000})`];
  const inTime = sql`${e.zoneId} = ${zoneId} and ${e.occurredAt} between ${from} and ${to}`;
  const isSame = (of: Pick<Fillable, "occurredAt" | "logId">) =>
    sql`${e.occurredAt} = ${of.occurredAt} and ${e.logId} = ${of.logId}`;
  const lacks = sql`(${lacksOf(e, s)} or ${unmasksOf(e, s)})`;
  const learns = learnsOf(e, s);
  const contradicts = sql.raw(contradictsOf("e", "s"));
  const touched = sql`
    select distinct rule, date_trunc('minute', ${names(e.occurredAt)}) as minute
    from filled cross join lateral unnest(array[coalesce(old_rule, ''), coalesce(${names(e.ruleId)}, '')]) as rule
    where is_lacking`;
  return sql`
    with missing as (
      select known.*, s.*
      from (select * from staged_events order by ${KEY}) s
      cross join lateral (
        select ${e.ruleId} as old_rule, ${lacks} as is_lacking, ${learns} as is_learning, ${contradicts} as is_contested
        from ${wafEvents} e
        where ${isSame(s)} and ${inTime} and (${lacks} or ${learns} or ${contradicts})
        limit 1 for update) known),
    filled as (
      update ${wafEvents} e set ${fillOf(e, m)}, ${learnOf(e, m)},
        ${names(e.ip)} = case when ${unmasksOf(e, m)} then ${m.ip} else ${e.ip} end
      from missing m
      where ${isSame(m)} and ${inTime} and (m.is_lacking or m.is_learning)
      returning m.is_lacking, m.old_rule, ${e.ruleId}, ${e.occurredAt}),
    marked as (${markStale(zoneId, touched)})
    select (select count(*) from filled where is_lacking)::integer as filled,
      exists (select from missing where is_contested)
      or exists (select from ${eventRevisions} ${r} where ${r.zoneId} = ${zoneId} and ${r.occurredAt} between ${from} and ${to}
        and ${r.acceptedAt} is null) as "isContested"`;
}

/** A look of the search must show another value twice, this far apart, before it replaces the stored value. */
const CONFIRM = sql.raw("interval '10 minutes'");

const isFullAddress = (ip: string) => `(${ip} <> '' and ${ip} not like '%*%' and ${ip} not like 'anon-%')`;

/**
 * Returns SQL for whether `given` shows another value than `known` has. Only the search resolves every dimension, so only
 * rows of the search count. An empty, masked or pseudonymous value contradicts nothing, and an erased event stays erased.
 */
function contradictsOf(known: string, given: string): string {
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
  const inTime = ({ occurredAt }: typeof e | typeof r) =>
    sql`${occurredAt} between ${new Date(fromMs)} and ${new Date(toMs)}`;
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
        select * from ${wafEvents} ${e}
        where ${e.zoneId} = ${zoneId} and ${e.occurredAt} = s.occurred_at and ${e.logId} = s.log_id and ${inTime(e)}
          and ${sql.raw(isComparable("e", "s"))}
        limit 1 for update) e
      cross join lateral (values ${sql.raw(values)}) as v(field, known, given)
      where ${isUsable}),
    noted as materialized (
      select ${r.occurredAt}, ${r.logId}, ${r.field}, ${r.after}, ${r.seenAt} from ${eventRevisions} ${r}
      where ${r.zoneId} = ${zoneId} and ${inTime(r)} and ${r.acceptedAt} is null and ${r.field} <> 'withdrawn'),
    confirmed as (
      update ${eventRevisions} ${r} set ${names(r.acceptedAt)} = ${at}, ${names(r.before)} = s.known
      from shown s join noted n using (${names(r.occurredAt, r.logId, r.field)})
      where s.given = n.after and s.given <> s.known and n.seen_at <= ${at} - ${CONFIRM}
        and ${r.zoneId} = ${zoneId} and ${IS_NOTED}
      returning ${r.occurredAt}, ${r.logId}, ${r.field}, ${r.after}),
    dismissed as (
      delete from ${eventRevisions} ${r} using shown s join noted n using (${names(r.occurredAt, r.logId, r.field)})
      where s.given <> n.after and ${r.zoneId} = ${zoneId} and ${IS_NOTED}),
    entered as (
      insert into ${eventRevisions} (${names(r.zoneId, r.occurredAt, r.logId, r.field, r.seenAt, r.before, r.after)})
      select ${zoneId}, occurred_at, log_id, field, ${at}, known, given from shown s
      where given <> known and not exists (select from noted n
        where n.occurred_at = s.occurred_at and n.log_id = s.log_id and n.field = s.field and n.after = s.given)
      on conflict do nothing),
    changed as (
      select occurred_at, log_id, jsonb_object_agg(field, after) as given from confirmed group by 1, 2),
    revised as (
      update ${wafEvents} ${e} set ${sql.raw(revised.join(", "))}
      from changed c
      where ${e.zoneId} = ${zoneId} and ${e.occurredAt} = c.occurred_at and ${e.logId} = c.log_id and ${inTime(e)}
      returning ${e.occurredAt}, ${e.logId}, ${e.ruleId}),
    marked as (
      insert into ${dirtyBuckets} as ${d} (${names(d.zoneId, d.ruleId, d.minute)})
      select ${zoneId}, rule, minute from (
        select distinct rule, date_trunc('minute', r.occurred_at) as minute
        from revised r join shown s using (occurred_at, log_id)
        cross join lateral unnest(array[r.rule_id, case when s.field = 'rule_id' then s.known else r.rule_id end]) as rule
        where rule is not null) touched
      order by rule collate "C", minute
      on conflict (${names(d.zoneId, d.ruleId, d.minute)}) do update set ${names(d.marks)} = ${d.marks} + 1)
    select count(*)::integer as revised from revised`);
  return rows[0]?.revised ?? 0;
}

/** Returns the hours (epoch ms of their starts) with a noted value, and when the latest of them was first shown. */
export async function readContested(
  db: Queryable,
  zoneId: number,
  fromMs: number,
): Promise<Map<number, number>> {
  const rows = await db
    .select({ hour: HOUR, seen: epochMs(sql`max(${r.seenAt})`) })
    .from(r)
    .where(
      sql`${r.zoneId} = ${zoneId} and ${r.occurredAt} >= ${new Date(fromMs)} and ${r.acceptedAt} is null
        and ${r.field} <> 'withdrawn'`,
    )
    .groupBy(sql`1`);
  return new Map(rows.map(({ hour, seen }) => [hour, seen]));
}

interface SearchedHour {
  /** Epoch ms, as the other time. */
  readonly startsAt: number;
  readonly atMs: number;
  /** The ids that the search showed in the hour, and those of the stored events that it did not show. */
  readonly shown: readonly string[];
  readonly lacking: readonly string[];
}

/**
 * Notes the events of one hour that a search at `atMs` did not show, and forgets the notes of those that it showed. An
 * event that was withdrawn and is shown again is no longer withdrawn. Returns the other hours (epoch ms of their starts) that
 * lack an event of the hour: the event has moved to this hour, and has to be merged.
 */
export async function noteLacking(
  tx: Queryable,
  zoneId: number,
  { startsAt, atMs, shown, lacking }: SearchedHour,
): Promise<number[]> {
  const ids = sql`${sql.param([...lacking])}::text[]`;
  const entered = sql`, entered as (
    insert into ${eventRevisions} (${names(r.zoneId, r.occurredAt, r.logId, r.field, r.seenAt)})
    select ${e.zoneId}, ${e.occurredAt}, ${e.logId}, 'withdrawn', ${new Date(atMs)} from ${wafEvents} ${e}
    where ${isIn(e, zoneId, startsAt)} and ${e.logId} = any(${ids}) and not exists (select from ${eventRevisions} ${r}
      where ${r.zoneId} = ${e.zoneId} and ${r.occurredAt} = ${e.occurredAt} and ${r.logId} = ${e.logId}
        and ${r.field} = 'withdrawn')
    on conflict do nothing)`;
  const { rows } = await tx.execute<{ hour: number }>(sql`
    with forgotten as (
      delete from ${eventRevisions} ${r} where ${isIn(r, zoneId, startsAt)} and ${r.field} = 'withdrawn' and ${r.logId} <> all(${ids}))
    ${lacking.length === 0 ? sql`` : entered}
    select distinct ${HOUR} as hour from ${eventRevisions} ${r}
    where ${r.zoneId} = ${zoneId} and ${r.field} = 'withdrawn' and not (${inHour(r, startsAt)})
      and ${r.logId} = any(${sql.param([...shown])}::text[])`);
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
    await tx
      .update(r)
      .set({ acceptedAt: new Date(atMs) })
      .where(sql`${isIn(r, zoneId, startsAt)} and ${r.field} = 'withdrawn' and ${r.acceptedAt} is null`);
}

const HOUR = epochMs(sql`date_trunc('hour', ${r.occurredAt}, 'UTC')`);

function isIn(table: typeof e | typeof r, zoneId: number, startsAt: number) {
  return sql`${table.zoneId} = ${zoneId} and ${inHour(table, startsAt)}`;
}

function inHour({ occurredAt }: typeof e | typeof r, startsAt: number) {
  return sql`${occurredAt} >= ${new Date(startsAt)} and ${occurredAt} < ${new Date(startsAt + HOUR_MS)}`;
}
