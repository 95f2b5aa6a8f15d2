import { sql } from "drizzle-orm";
import type pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import type { Queryable } from "../client.ts";
import { LATE_EVENT, REOPENED_FOR_MS, reopening } from "../coverage/reopen-hours.ts";
import type { Transaction } from "../postgres/transaction.ts";
import { EVENT_COLUMNS as COLUMNS } from "./event-rows.ts";
import { settleStagedDoubles } from "./merge-doubles.ts";
import { contradictsOf, FILLED, reviseEvents } from "./revise-events.ts";

/** Minutes and hours that a page changes, counted by the caller. */
interface EventCounts {
  /** Minutes by rule, as epoch ms of their start. */
  readonly minutes: ReadonlyMap<string, ReadonlySet<number>>;
  /** Number of events by hour, epoch ms of its start. */
  readonly hours: ReadonlyMap<number, number>;
  /** True if some events come from the list, so that the search still has to give their dimensions. */
  readonly hasUnresolved: boolean;
}

/** A page's events, ready to be copied. */
export interface NewEvents {
  /** In the format of `toEventRows`. */
  readonly rows: Buffer;
  readonly size: number;
  /** Epoch ms; null when there are none. */
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  readonly counts: EventCounts;
}

export interface StoredEvents {
  /** Events that were not stored before. */
  readonly inserted: number;
  /** Stored events that gained a dimension, or whose values a later look has changed. */
  readonly filled: number;
  /** Sealed hours that gained an event and were reopened; epoch ms of their starts. */
  readonly reopened: readonly number[];
}

/**
 * Returns the assignments to an hour that gains events. A sealed hour that the platform still serves is reopened,
 * because its seal says that there are no further events. An older hour counts the events and keeps its seal.
 */
function gain(storedAt: number) {
  const isReopened = sql`coverage_windows.state = 'sealed'
    and coverage_windows.starts_at > ${new Date(storedAt - REOPENED_FOR_MS)}`;
  const at = new Date(storedAt);
  return sql`stored_count = coverage_windows.stored_count + excluded.stored_count,
    last_new_at = greatest(coverage_windows.last_new_at, excluded.last_new_at),
    unresolved_since = greatest(coverage_windows.unresolved_since, excluded.unresolved_since),
    ${reopening(isReopened, at, LATE_EVENT)}`;
}

/**
 * Copies events, none of which is stored, straight into the table. Costs little more than a plain COPY.
 * @throws the driver's 23505 when one of them is stored, 23514 when a day has no partition.
 */
export async function copyNewEvents(client: pg.PoolClient, events: NewEvents): Promise<void> {
  await copy(client, "waf_events", events.rows);
}

async function copy(client: pg.PoolClient, table: string, rows: Buffer): Promise<void> {
  const stream = client.query(copyFrom(`copy ${table} (${COLUMNS}) from stdin`));
  await new Promise<void>((resolve, reject) => {
    stream.on("error", reject).on("finish", resolve);
    stream.end(rows);
  });
}

/** Marks the minutes of copied events as stale and adds the events to the counts of their hours. */
export async function recordCounts(
  tx: Queryable,
  { zoneId, counts, storedAt }: { zoneId: number; counts: EventCounts; storedAt: number },
): Promise<number[]> {
  const rules = [...counts.minutes].flatMap(([rule, touched]) => Array.from(touched, () => rule));
  const minutes = [...counts.minutes.values()].flatMap((touched) => [...touched]);
  const hours = [...counts.hours.keys()];
  // Every writer locks in the same order: marks by key, then hours by key.
  const unresolvedSince = counts.hasUnresolved ? new Date(storedAt) : null;
  const gained = await tx.execute<{ hour: number }>(sql`
    with marked as (
      insert into dirty_buckets (zone_id, rule_id, minute)
      select ${zoneId}, rule_id, to_timestamp(minute / 1000)
      from unnest(${sql.param(rules)}::text[], ${sql.param(minutes)}::double precision[]) as given(rule_id, minute)
      order by rule_id collate "C", minute
      on conflict (zone_id, rule_id, minute) do update set marks = dirty_buckets.marks + 1),
    counted as (
    insert into coverage_windows (zone_id, starts_at, stored_count, last_new_at, unresolved_since)
    select ${zoneId}, to_timestamp(hour / 1000), events, ${new Date(storedAt)}, ${unresolvedSince}::timestamptz
    from unnest(${sql.param(hours)}::double precision[], ${sql.param([...counts.hours.values()])}::integer[])
      as given(hour, events)
    order by hour
    on conflict (zone_id, starts_at) do update set ${gain(storedAt)}
    returning starts_at, reopened_at)
    select (extract(epoch from starts_at) * 1000)::float8 as hour from counted
    where reopened_at = ${new Date(storedAt)}`);
  return gained.rows.map(({ hour }) => hour);
}

/**
 * Stores events of which some may already be stored, marks their minutes as stale and adds the new ones to the counts
 * of their hours. A stored event gains the values that it lacks and loses none. A full address replaces a masked one,
 * never the reverse.
 * @throws the driver's 23514 when a day has no partition.
 */
export async function mergeEvents(
  transaction: Transaction,
  page: { zoneId: number; storedAt: number },
  events: NewEvents,
): Promise<StoredEvents> {
  if (events.size === 0) return { inserted: 0, filled: 0, reopened: [] };
  await stageEvents(transaction, events);
  return mergeStaged(transaction, page, events);
}

/** Copies events into `staged_events`, which is emptied at the end of the transaction. Once per transaction. */
export async function stageEvents({ client }: Transaction, { rows }: Pick<NewEvents, "rows">): Promise<void> {
  await client.query("create temp table if not exists staged_events (like waf_events) on commit delete rows");
  await copy(client, "staged_events", rows);
}

/** Merges `size` staged events: the second half of `mergeEvents`. */
export async function mergeStaged(
  transaction: Transaction,
  { zoneId, storedAt }: { zoneId: number; storedAt: number },
  { size, firstAt, lastAt }: Pick<NewEvents, "size" | "firstAt" | "lastAt">,
): Promise<StoredEvents> {
  if (size === 0) return { inserted: 0, filled: 0, reopened: [] };
  const { tx, client } = transaction;
  await client.query(DROP_ALIASES);
  await settleStagedDoubles(tx, zoneId, storedAt);
  const { inserted, reopened } = await insertStaged(transaction, zoneId, storedAt);
  if (inserted === size || firstAt === null || lastAt === null) return { inserted, filled: 0, reopened };
  const { rows } = await tx.execute<{ filled: number; isContested: boolean }>(
    fillStatement(zoneId, firstAt, lastAt),
  );
  const { filled = 0, isContested = false } = rows[0] ?? {};
  const span = { fromMs: firstAt, toMs: lastAt, atMs: storedAt };
  const revised = isContested ? await reviseEvents(tx, zoneId, span) : 0;
  return { inserted, filled: filled + revised, reopened };
}

/** Drops list rows whose event is stored under another time. A search row has the right time, so it stays. */
const DROP_ALIASES = `delete from staged_events s using event_aliases a
  where a.zone_id = s.zone_id and a.other_at = s.occurred_at and a.log_id = s.log_id and s.feature is null`;

async function insertStaged(
  { tx }: Transaction,
  zoneId: number,
  storedAt: number,
): Promise<Pick<StoredEvents, "inserted" | "reopened">> {
  const result = await tx.execute<{ inserted: number; reopened: number[] }>(sql`
    with inserted as (
      insert into waf_events (${sql.raw(COLUMNS)})
      select ${sql.raw(COLUMNS)} from staged_events order by zone_id, occurred_at, log_id
      on conflict (zone_id, occurred_at, log_id) do nothing
      returning rule_id, occurred_at, feature),
    marked as (
      insert into dirty_buckets (zone_id, rule_id, minute)
      select ${zoneId}, rule, minute from (
        select distinct coalesce(rule_id, '') as rule, date_trunc('minute', occurred_at) as minute from inserted) touched
      order by rule collate "C", minute
      on conflict (zone_id, rule_id, minute) do update set marks = dirty_buckets.marks + 1),
    counted as (
      insert into coverage_windows (zone_id, starts_at, stored_count, last_new_at, unresolved_since)
      select ${zoneId}, date_trunc('hour', occurred_at), count(*), ${new Date(storedAt)},
        case when bool_or(feature is null) then ${new Date(storedAt)}::timestamptz end
      from inserted group by 2 order by 2
      on conflict (zone_id, starts_at) do update set ${gain(storedAt)}
      returning starts_at, reopened_at)
    select count(*)::integer as inserted, array(select (extract(epoch from starts_at) * 1000)::float8 from counted
      where reopened_at = ${new Date(storedAt)}) as reopened
    from inserted`);
  return result.rows[0] ?? { inserted: 0, reopened: [] };
}

/**
 * Returns the statement that fills rows that lack a value, and says whether a row shows another value than is stored, or
 * whether that was noted before. A DO UPDATE on the insert would lock and log every known
 * row; this statement writes only rows that lack something. A rule or action that becomes known moves the event from
 * one count to another, so both minutes are stale. Known rows are looked up by key, one after the other (`limit`
 * keeps the lateral from becoming a join): for a partition that was never analyzed the planner would compare every
 * row of the page with every row of its hour.
 */
function fillStatement(zoneId: number, fromMs: number, toMs: number) {
  const lacks = sql.raw(`(${lacksOf("e", "s")} or ${unmasksOf("e", "s")})`);
  const contradicts = sql.raw(contradictsOf("e", "s"));
  const fill = fillOf("e", "m");
  const [from, to] = [sql`to_timestamp(${fromMs / 1_000})`, sql`to_timestamp(${toMs / 1_000})`];
  return sql`
    with missing as (
      select e.rule_id as old_rule_id, e.action as old_action, e.is_lacking, e.is_contested, s.*
      from (select * from staged_events order by zone_id, occurred_at, log_id) s
      cross join lateral (
        select rule_id, action, ${lacks} as is_lacking, ${contradicts} as is_contested from waf_events e
        where e.zone_id = ${zoneId} and e.occurred_at = s.occurred_at and e.log_id = s.log_id
          and e.occurred_at between ${from} and ${to} and (${lacks} or ${contradicts})
        limit 1 for update) e),
    filled as (
      update waf_events e set ${sql.raw(fill)},
        ip = case when ${sql.raw(unmasksOf("e", "m"))} then m.ip else e.ip end
      from missing m
      where e.zone_id = ${zoneId} and e.occurred_at = m.occurred_at and e.log_id = m.log_id
        and e.occurred_at between ${from} and ${to} and m.is_lacking
      returning m.old_rule_id, m.old_action, e.rule_id, e.action, e.occurred_at),
    marked as (
      insert into dirty_buckets (zone_id, rule_id, minute)
      select ${zoneId}, rule, minute from (
        select distinct rule, date_trunc('minute', occurred_at) as minute
        from filled cross join lateral unnest(array[coalesce(old_rule_id, ''), coalesce(rule_id, '')]) as rule
        where old_rule_id is distinct from rule_id or old_action is distinct from action) touched
      order by rule collate "C", minute
      on conflict (zone_id, rule_id, minute) do update set marks = dirty_buckets.marks + 1)
    select (select count(*) from filled)::integer as filled,
      exists (select from missing where is_contested)
      or exists (select from event_revisions where zone_id = ${zoneId} and occurred_at between ${from} and ${to}
        and accepted_at is null) as "isContested"`;
}

/** Returns SQL for whether the row `given` has a dimension that the row `known` lacks, without the address. */
export function lacksOf(known: string, given: string): string {
  return FILLED.map((name) => `(${known}.${name} is null and ${given}.${name} is not null)`).join(" or ");
}

/** Returns SQL assignments that copy to `known` the values that it lacks. */
export function fillOf(known: string, given: string): string {
  return FILLED.map((name) => `${name} = coalesce(${known}.${name}, ${given}.${name})`).join(", ");
}

/**
 * Returns SQL for whether `given` has a better address than `known`: any address instead of none, a full one instead
 * of a masked one.
 */
export function unmasksOf(known: string, given: string): string {
  return `(${given}.ip is not null and (${known}.ip is null
    or (${known}.ip like '%*%' and ${given}.ip <> '' and ${given}.ip not like '%*%')))`;
}
