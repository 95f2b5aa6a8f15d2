import { type Column, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { from as copyFrom } from "pg-copy-streams";
import type { FactColumns } from "#model/request-facts.ts";
import { type EventKey, spanOf, type WafEvent } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import type { Transaction } from "../postgres/transaction.ts";
import { LATE_EVENT, REOPENED_FOR_MS, reopening } from "../proof/reopen-hours.ts";
import { coverageWindows as w } from "../schema/coverage.ts";
import { eventAliases as a, eventRevisions as r, wafEvents } from "../schema/events.ts";
import { dirtyBuckets } from "../schema/ingest.ts";
import { EVENT_COLUMNS, FILLED_KEYS, learnFacts, learnOf, learnsOf, toEventRows } from "./event-rows.ts";
import { settleStagedDoubles } from "./merge-doubles.ts";
import { contradictsOf, reviseEvents } from "./revise-events.ts";

const e = alias(wafEvents, "e");
/** Staged events: a temporary table with the columns of `waf_events`. */
const s = alias(wafEvents, "s");
const KEY = names(wafEvents.zoneId, wafEvents.occurredAt, wafEvents.logId);
const COLUMNS = sql.raw(EVENT_COLUMNS);

export interface StoredEvents {
  /** Events that were not stored before. */
  readonly inserted: number;
  /** Stored events that gained a dimension, or whose values a later look has changed. */
  readonly filled: number;
  /** Sealed hours that gained an event and were reopened; epoch ms of their starts. */
  readonly reopened: readonly number[];
}

export interface EventsToStore {
  readonly zoneId: number;
  readonly events: readonly WafEvent[];
  /** True if the events are probably all new. */
  readonly expectNew: boolean;
  /** Stored as the time at which the hours last gained an event; epoch ms. */
  readonly storedAt: number;
}

/**
 * Copies events, none of which is stored, straight into the table, marks their minutes as stale and adds them to the counts
 * of their hours. Costs Postgres half of what staging and merging costs.
 * @throws the driver's 23505 when one of them is stored, 23514 when a day has no partition.
 */
export async function copyEvents(transaction: Transaction, page: EventsToStore): Promise<StoredEvents> {
  const { events } = page;
  await copy(transaction, "waf_events", page);
  const rules = sql.param(events.map(({ ruleId }) => ruleId));
  const times = sql.param(events.map(({ occurredAt }) => occurredAt));
  const features = sql.param(events.map(({ feature }) => feature));
  const columns = names(wafEvents.ruleId, wafEvents.occurredAt, wafEvents.feature);
  const copied = sql`select rule, to_timestamp(at / 1000), feature
    from unnest(${rules}::text[], ${times}::float8[], ${features}::text[]) as given(rule, at, feature)`;
  const { rows } = await transaction.tx.execute<{ reopened: number[] }>(
    countStatement(page, sql`inserted (${columns}) as (${copied})`),
  );
  return { inserted: events.length, filled: 0, reopened: rows[0]?.reopened ?? [] };
}

/** Copies events into `staged_events`, which is emptied at the end of the transaction. Once per transaction. */
export async function stageEvents(transaction: Transaction, page: EventsToStore): Promise<void> {
  const create = "create temp table if not exists staged_events (like waf_events) on commit delete rows";
  await transaction.client.query(create);
  await copy(transaction, "staged_events", page);
}

async function copy(
  { client }: Transaction,
  table: string,
  { zoneId, events }: EventsToStore,
): Promise<void> {
  const stream = client.query(copyFrom(`copy ${table} (${EVENT_COLUMNS}) from stdin`));
  await new Promise<void>((resolve, reject) => {
    stream.on("error", reject).on("finish", resolve);
    stream.end(toEventRows(zoneId, events));
  });
}

/**
 * Stores the staged events of a page, of which some may already be stored, marks their minutes as stale and adds the new
 * ones to the counts of their hours. A stored event gains the values and facts that it lacks and loses none. A full address
 * replaces a masked one, never the reverse. Facts alone mark no minute: nothing that is counted or forwarded changes. `size` is the number of staged events.
 * @throws the driver's 23514 when a day has no partition.
 */
export async function mergeStaged(
  { tx }: Transaction,
  page: EventsToStore,
  size: number,
): Promise<StoredEvents> {
  const { zoneId, events, storedAt } = page;
  const span = spanOf(events);
  if (size === 0 || span === null) return { inserted: 0, filled: 0, reopened: [] };
  const { rows: dropped } = await tx.execute<EventKey & FactColumns & Record<string, unknown>>(DROP_ALIASES);
  await learnFacts(tx, zoneId, dropped);
  await settleStagedDoubles(tx, zoneId, storedAt);
  const insert = sql`
    insert into ${wafEvents} (${COLUMNS})
    select ${COLUMNS} from staged_events order by ${KEY}
    on conflict (${KEY}) do nothing
    returning ${wafEvents.ruleId}, ${wafEvents.occurredAt}, ${wafEvents.feature}`;
  const stored = await tx.execute<{ inserted: number; reopened: number[] }>(
    countStatement(page, sql`inserted as (${insert})`),
  );
  const { inserted = 0, reopened = [] } = stored.rows[0] ?? {};
  if (inserted === size) return { inserted, filled: 0, reopened };
  const { firstAt: fromMs, lastAt: toMs } = span;
  const { rows } = await tx.execute<{ filled: number; isContested: boolean }>(
    fillStatement(zoneId, fromMs, toMs),
  );
  const { filled = 0, isContested = false } = rows[0] ?? {};
  const revised = isContested ? await reviseEvents(tx, zoneId, { fromMs, toMs, atMs: storedAt }) : 0;
  return { inserted, filled: filled + revised, reopened };
}

/** Returns whether an event in the page's time span is stored under another time. Such a page has to be staged. */
export async function hasAliases(tx: Queryable, { zoneId, events }: EventsToStore): Promise<boolean> {
  const span = spanOf(events);
  if (span === null) return false;
  const { rowCount } = await tx.execute(sql`select from ${a} where ${a.zoneId} = ${zoneId}
    and ${a.otherAt} between ${new Date(span.firstAt)} and ${new Date(span.lastAt)} limit 1`);
  return rowCount !== 0;
}

/**
 * Drops list rows whose event is stored under another time, and returns their facts under that time. A search row has the
 * right time, so it stays.
 */
const DROP_ALIASES = sql`delete from staged_events s using ${a}
  where ${a.zoneId} = ${s.zoneId} and ${a.otherAt} = ${s.occurredAt} and ${a.logId} = ${s.logId}
    and ${s.feature} is null
  returning ${epochMs(a.keptAt)} as "occurredAt", ${s.logId} as "logId", ${s.method} as method,
    ${s.requestId} as "requestId", ${s.matchedKey} as "matchedKey", ${s.facts} as facts`;

/** Returns the statement that marks the minutes and counts the hours of the events that its step `inserted` shows. */
function countStatement({ zoneId, storedAt }: EventsToStore, inserted: SQL): SQL {
  const { ruleId, occurredAt, feature } = wafEvents;
  const [rule, time, dimension] = [names(ruleId), names(occurredAt), names(feature)];
  const at = new Date(storedAt);
  return sql`
    with ${inserted},
    marked as (${markStale(
      zoneId,
      sql`select distinct coalesce(${rule}, '') as rule, date_trunc('minute', ${time}) as minute from inserted`,
    )}),
    counted as (
      insert into ${w} (${names(w.zoneId, w.startsAt, w.storedCount, w.lastNewAt, w.unresolvedSince)})
      select ${zoneId}, date_trunc('hour', ${time}), count(*), ${at}::timestamptz,
        case when bool_or(${dimension} is null) then ${at}::timestamptz end
      from inserted group by 2 order by 2
      on conflict (${names(w.zoneId, w.startsAt)}) do update set ${gain(storedAt)}
      returning ${w.startsAt}, ${w.reopenedAt})
    select count(*)::integer as inserted, array(select ${epochMs(names(w.startsAt))} from counted
      where ${names(w.reopenedAt)} = ${at}) as reopened
    from inserted`;
}

/**
 * Returns the assignments to an hour that gains events. A sealed hour that the platform still serves is reopened,
 * because its seal says that there are no further events. An older hour counts the events and keeps its seal.
 */
function gain(storedAt: number): SQL {
  const isReopened = sql`${w.state} = 'sealed' and ${w.startsAt} > ${new Date(storedAt - REOPENED_FOR_MS)}`;
  const given = alias(w, "excluded");
  return sql`${names(w.storedCount)} = ${w.storedCount} + ${given.storedCount},
    ${names(w.lastNewAt)} = greatest(${w.lastNewAt}, ${given.lastNewAt}),
    ${names(w.unresolvedSince)} = greatest(${w.unresolvedSince}, ${given.unresolvedSince}),
    ${reopening(isReopened, new Date(storedAt), LATE_EVENT)}`;
}

/** Returns the statement that marks minutes as stale. Every writer locks them in the same order. */
function markStale(zoneId: number, touched: SQL): SQL {
  const { ruleId, minute, marks } = dirtyBuckets;
  return sql`
    insert into ${dirtyBuckets} (${names(dirtyBuckets.zoneId, ruleId, minute)})
    select ${zoneId}, rule, minute from (${touched}) touched
    order by rule collate "C", minute
    on conflict (${names(dirtyBuckets.zoneId, ruleId, minute)}) do update set ${names(marks)} = ${marks} + 1`;
}

/**
 * Returns the statement that fills rows that lack a value, and says whether a row shows another value than is stored, or
 * whether that was noted before. A DO UPDATE on the insert would lock and log every known
 * row; this statement writes only rows that lack something. A rule or action that becomes known moves the event from
 * one count to another, and every other value is forwarded, so both minutes are stale; of a row that gains only facts,
 * none is. Known rows are looked up by key, one after the other (`limit`
 * keeps the lateral from becoming a join): for a partition that was never analyzed the planner would compare every
 * row of the page with every row of its hour.
 */
function fillStatement(zoneId: number, fromMs: number, toMs: number): SQL {
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
      or exists (select from ${r} where ${r.zoneId} = ${zoneId} and ${r.occurredAt} between ${from} and ${to}
        and ${r.acceptedAt} is null) as "isContested"`;
}

/** The columns of stored, staged and held events that a look fills. */
type Fillable = { readonly [Key in (typeof FILLED_KEYS)[number] | "occurredAt" | "logId" | "ip"]: Column };

/** Returns whether the row `given` has a dimension that the row `known` lacks, without the address. */
export function lacksOf(known: Fillable, given: Fillable): SQL {
  const lacks = FILLED_KEYS.map((key) => sql`(${known[key]} is null and ${given[key]} is not null)`);
  return sql.join(lacks, sql` or `);
}

/** Returns the assignments that copy to `known` the values that it lacks. */
function fillOf(known: Fillable, given: Fillable): SQL {
  const fills = FILLED_KEYS.map((key) => sql`${names(known[key])} = coalesce(${known[key]}, ${given[key]})`);
  return sql.join(fills, sql`, `);
}

/**
 * Returns whether `given` has a better address than `known`: any address instead of none, a full one instead of a
 * masked one.
 */
export function unmasksOf(known: Fillable, given: Fillable): SQL {
  return sql`(${given.ip} is not null and (${known.ip} is null
    or (${known.ip} like '%*%' and ${given.ip} <> '' and ${given.ip} not like '%*%')))`;
}
