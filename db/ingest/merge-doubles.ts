import { sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import { HOUR_MS } from "#lib/units.ts";
import type { FactColumns } from "#model/request-facts.ts";
import type { EventKey } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names, overwriting } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { eventAliases, eventRevisions, wafEvents } from "../schema/events.ts";
import { dirtyBuckets } from "../schema/ingest.ts";
import { learnFacts, learnOf } from "./event-rows.ts";

const e = alias(wafEvents, "e");
const ea = alias(eventAliases, "ea");
const w = alias(coverageWindows, "w");
const b = alias(dirtyBuckets, "b");
const r = alias(eventRevisions, "r");
const k = alias(wafEvents, "k");
/** Staged events, and stored events that a staged one replaces. */
const [s, d] = [alias(wafEvents, "s"), alias(wafEvents, "d")];
const KEY = names(ea.zoneId, ea.otherAt, ea.logId);
const COLUMNS = names(ea.zoneId, ea.logId, ea.otherAt, ea.keptAt, ea.notedAt);

const FACTS = sql`${e.method}, ${e.requestId}, ${e.matchedKey}, ${e.facts}`;
/** The facts of a row `r`, by their names in the code. */
const READ_FACTS = sql`r.method, r.request_id as "requestId", r.matched_key as "matchedKey", r.facts`;

/** Two times of one event that are this close together are merged. */
const NEAR = sql.raw("interval '1 hour'");
/** The same limit, if only the list has shown one of the times, or if the latest search shows one of them no more. */
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
  const { rows } = await tx.execute<MergedDouble & FactColumns & Record<string, unknown>>(sql`
    with lacking as (
      select ${r.occurredAt}, ${r.logId} from ${eventRevisions} ${r}
      where ${r.zoneId} = ${zoneId} and ${r.occurredAt} >= ${from} and ${r.occurredAt} < ${to}
        and ${r.field} = 'withdrawn'),
    near as (
      select ${e.occurredAt}, ${e.logId}, ${e.feature} is null as is_unresolved from ${wafEvents} ${e}
      where ${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${from}::timestamptz - ${NEAR}
        and ${e.occurredAt} < ${to}::timestamptz + ${NEAR}
      union
      select ${e.occurredAt}, ${e.logId}, ${e.feature} is null from ${wafEvents} ${e}
      where ${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${from}::timestamptz - ${FAR}
        and ${e.occurredAt} < ${to}::timestamptz + ${FAR} and ${e.logId} in (
          select ${e.logId} from ${wafEvents} ${e} where ${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${from}
            and ${e.occurredAt} < ${to} and ${e.feature} is null
          union select log_id from lacking)),
    ranked as (
      select log_id, occurred_at, row_number() over one as rank, first_value(occurred_at) over one as kept_at,
        bool_or(occurred_at >= ${from} and occurred_at < ${to}) over (partition by log_id) as is_asked,
        count(*) over (partition by log_id) as times, bool_or(not is_unresolved) over (partition by log_id) as is_known
      from near window one as (partition by log_id order by is_unresolved,
        (occurred_at, log_id) in (select occurred_at, log_id from lacking), occurred_at)),
    doubled as (select * from ranked where times > 1 and rank > 1 and is_asked and is_known),
    removed as (
      delete from ${wafEvents} ${e} using doubled d
      where ${e.zoneId} = ${zoneId} and ${e.occurredAt} = d.occurred_at and ${e.logId} = d.log_id
      returning ${e.ruleId}, ${e.occurredAt}, ${e.logId}, ${FACTS}),
    noted as (
      insert into ${eventAliases} (${COLUMNS})
      select ${zoneId}, log_id, occurred_at, kept_at, ${at} from doubled order by occurred_at, log_id
      on conflict (${KEY}) do update set ${overwriting(ea.keptAt)}),
    ${countRemoved(zoneId)}
    select log_id as "logId", ${epochMs(sql`kept_at`)} as "keptAt", ${epochMs(sql`occurred_at`)} as "otherAt", ${READ_FACTS}
    from doubled left join removed r using (occurred_at, log_id) order by occurred_at, log_id`);
  await learnFacts(
    tx,
    zoneId,
    rows.map(({ keptAt: occurredAt, ...row }) => ({ ...row, occurredAt })),
  );
  return rows.map(({ logId, keptAt, otherAt }) => ({ logId, keptAt, otherAt }));
}

/** Two steps after a step `removed` (rule_id, occurred_at of deleted events): buckets to count again, hours that hold less. */
export function countRemoved(zoneId: number) {
  return sql`marked as (
      insert into ${dirtyBuckets} as ${b} (${names(b.zoneId, b.ruleId, b.minute)})
      select ${zoneId}, rule, minute from (
        select distinct coalesce(rule_id, '') as rule, date_trunc('minute', occurred_at) as minute from removed) touched
      order by rule collate "C", minute
      on conflict (${names(b.zoneId, b.ruleId, b.minute)}) do update set ${names(b.marks)} = ${b.marks} + 1),
    counted as (
      update ${coverageWindows} ${w} set ${names(w.storedCount)} = ${w.storedCount} - r.events
      from (select date_trunc('hour', occurred_at) as starts_at, count(*)::integer as events from removed group by 1) r
      where ${w.zoneId} = ${zoneId} and ${w.startsAt} = r.starts_at)`;
}

/** A platform that rounds times shows an event this close to its own time. */
const ROUNDED = sql.raw("interval '1 second'");

/**
 * Resolves staged events whose log id is stored within a second of their time. The search's time is kept, else the
 * stored one. The other time is stored as an alias. A resolved event is removed from the staged or from the stored
 * events, and the row that stays gains its facts.
 */
export async function settleStagedDoubles(tx: Queryable, zoneId: number, atMs: number): Promise<void> {
  const at = new Date(atMs);
  const { rows } = await tx.execute<EventKey & FactColumns & Record<string, unknown>>(sql`
    with doubles as (
      select s.log_id, s.occurred_at as staged_at, ${e.occurredAt} as stored_at,
        s.feature is not null and ${e.feature} is null as is_replaced, ${e.ip}, ${FACTS}
      from staged_events s cross join lateral (
        select ${e.occurredAt}, ${e.feature}, ${e.ip}, ${FACTS} from ${wafEvents} ${e}
        where ${e.zoneId} = ${zoneId} and ${e.occurredAt} between s.occurred_at - ${ROUNDED} and s.occurred_at + ${ROUNDED}
          and ${e.logId} = s.log_id and ${e.occurredAt} <> s.occurred_at limit 1) ${e}
      where not exists (select from ${wafEvents} ${k}
        where ${k.zoneId} = ${zoneId} and ${k.occurredAt} = s.occurred_at and ${k.logId} = s.log_id)),
    noted as (
      insert into ${eventAliases} (${COLUMNS})
      select distinct on (other_at, log_id) ${zoneId}, log_id, other_at, kept_at, noted_at from (
        select log_id, case when is_replaced then stored_at else staged_at end as other_at,
          case when is_replaced then staged_at else stored_at end as kept_at, ${at}::timestamptz as noted_at
        from doubles) as named order by other_at, log_id
      on conflict (${KEY}) do nothing),
    unstaged as (
      delete from staged_events s using doubles d
      where not d.is_replaced and s.log_id = d.log_id and s.occurred_at = d.staged_at
      returning d.stored_at, s.log_id, s.method, s.request_id, s.matched_key, s.facts),
    kept as (
      update staged_events s set ${learnOf(s, d)} from doubles d
      where d.is_replaced and s.log_id = d.log_id and s.occurred_at = d.staged_at),
    removed as (
      delete from ${wafEvents} ${e} using doubles d
      where d.is_replaced and ${e.zoneId} = ${zoneId} and ${e.occurredAt} = d.stored_at and ${e.logId} = d.log_id
      returning ${e.ruleId}, ${e.occurredAt}),
    ${countRemoved(zoneId)}
    select ${epochMs(sql`r.stored_at`)} as "occurredAt", r.log_id as "logId", ${READ_FACTS} from unstaged r`);
  await learnFacts(tx, zoneId, rows);
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
    insert into ${eventAliases} (${COLUMNS})
    select distinct on (g.at, g.log_id) ${zoneId}, g.log_id, g.at, ${e.occurredAt}, ${new Date(atMs)}::timestamptz
    from unnest(${times}::timestamptz[], ${ids}::text[]) as g(at, log_id)
    join ${wafEvents} ${e} on ${e.zoneId} = ${zoneId} and ${e.logId} = g.log_id
      and ${e.occurredAt} >= ${new Date(dayStart)} and ${e.occurredAt} < ${new Date(dayStart + 86_400_000)}
    order by g.at, g.log_id
    on conflict (${KEY}) do update set ${overwriting(ea.keptAt)}`);
  return rowCount ?? 0;
}

/**
 * Returns the log ids that were shown in [fromMs, toMs) in another hour than the one in which their event is stored;
 * epoch ms of the hours' starts.
 */
export function readMovedIds(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<{ logId: string; shownIn: number; storedIn: number }[]> {
  const hourOf = (column: PgColumn) => sql`date_trunc('hour', ${column}, 'UTC')`;
  const [shownIn, storedIn] = [hourOf(ea.otherAt), hourOf(ea.keptAt)];
  return db
    .select({ logId: ea.logId, shownIn: epochMs(shownIn), storedIn: epochMs(storedIn) })
    .from(ea)
    .where(
      sql`${ea.zoneId} = ${zoneId} and ${ea.otherAt} >= ${new Date(fromMs)} and ${ea.otherAt} < ${new Date(toMs)}
        and ${shownIn} <> ${storedIn}`,
    );
}
