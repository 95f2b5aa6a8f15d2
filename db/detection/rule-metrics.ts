import { and, eq, lt, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { DAY_MS } from "#lib/units.ts";
import type { SeriesKey } from "#model/fingerprint.ts";
import { toDay } from "#model/horizon.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { wafEvents } from "../schema/events.ts";
import { dirtyBuckets } from "../schema/ingest.ts";
import { ruleBuckets, ruleMetrics, ruleSnapshots } from "../schema/rules.ts";
import { askedSeries } from "./trends.ts";

const b = alias(ruleBuckets, "b");
const m = alias(ruleMetrics, "m");
const d = alias(dirtyBuckets, "d");
const w = alias(coverageWindows, "w");
const s = alias(ruleSnapshots, "s");
const e = alias(wafEvents, "e");
const excluded = alias(ruleMetrics, "excluded");

/** The platform serves 28 days. A few more are kept, so that days that it no longer serves can still be compared. */
const KEPT_DAYS = 35;

/**
 * Returns the rules with events since `sinceMs` whose metrics are due to be fetched. Rules that were never fetched
 * come first.
 */
export async function listDueRules(
  db: Queryable,
  {
    zoneIds,
    sinceMs,
    nowMs,
    limit,
  }: { zoneIds: readonly number[]; sinceMs: number; nowMs: number; limit: number },
): Promise<SeriesKey[]> {
  const found = await db.execute<{ zoneId: number; ruleId: string }>(sql`
    select seen.zone_id as "zoneId", seen.rule_id as "ruleId"
    from (select distinct ${b.zoneId}, ${b.ruleId} from ${ruleBuckets} ${b}
      where ${b.width} = 86400 and ${b.zoneId} = any(${sql.param(zoneIds)}::integer[]) and ${b.ruleId} <> ''
        and ${b.startsAt} > to_timestamp(${(sinceMs - DAY_MS) / 1_000}::float8)) as seen
    left join ${ruleSnapshots} ${s} on ${s.zoneId} = seen.zone_id and ${s.ruleId} = seen.rule_id
    where ${s.dueAt} is null or ${s.dueAt} <= to_timestamp(${nowMs / 1_000}::float8)
    order by ${s.dueAt} nulls first, seen.zone_id, seen.rule_id
    limit ${limit}`);
  return found.rows;
}

export interface Snapshot extends SeriesKey {
  readonly askedAtMs: number;
  readonly dueAtMs: number;
  readonly errorCode: string | null;
  readonly days: readonly {
    readonly day: string;
    readonly total: number;
    readonly blocked: number;
    readonly logged: number;
    readonly challenged: number;
  }[];
}

/** Stores the platform's counts over its earlier counts. Drops an answer that is older than the stored one. */
export async function storeSnapshot(tx: Queryable, snapshot: Snapshot): Promise<boolean> {
  const { zoneId, ruleId, askedAtMs, dueAtMs, errorCode, days } = snapshot;
  const [askedAt, dueAt] = [new Date(askedAtMs), new Date(dueAtMs)];
  const noted = await tx
    .insert(ruleSnapshots)
    .values({ zoneId, ruleId, askedAt, dueAt, errorCode })
    .onConflictDoUpdate({
      target: [ruleSnapshots.zoneId, ruleSnapshots.ruleId],
      set: { askedAt, dueAt, errorCode },
      setWhere: sql`${ruleSnapshots.askedAt} <= ${askedAt.toISOString()}`,
    })
    .returning({ ruleId: ruleSnapshots.ruleId });
  if (noted.length === 0) return false;
  if (days.length > 0)
    await tx
      .insert(ruleMetrics)
      .values(days.map((day) => ({ ...day, zoneId, ruleId, fetchedAt: askedAt })))
      .onConflictDoUpdate({
        target: [ruleMetrics.zoneId, ruleMetrics.ruleId, ruleMetrics.day],
        set: {
          total: sql`${excluded.total}`,
          blocked: sql`${excluded.blocked}`,
          logged: sql`${excluded.logged}`,
          challenged: sql`${excluded.challenged}`,
          fetchedAt: sql`${excluded.fetchedAt}`,
        },
      });
  const isOld = lt(ruleMetrics.day, toDay(askedAtMs - KEPT_DAYS * DAY_MS));
  await tx
    .delete(ruleMetrics)
    .where(and(eq(ruleMetrics.zoneId, zoneId), eq(ruleMetrics.ruleId, ruleId), isOld));
  return true;
}

export interface DaysBefore extends SeriesKey {
  /** Total of each known day. */
  readonly totals: readonly number[];
  /** The first hour, since the epoch, of the first day with events; null if there was none. */
  readonly firstHour: number | null;
}

/** Returns the platform's totals of each series' days that ended before the zone's own history begins. */
export async function readDaysBefore(db: Queryable, series: readonly SeriesKey[]): Promise<DaysBefore[]> {
  const found = await db.execute<DaysBefore & Record<string, unknown>>(sql`
    select ${m.zoneId} as "zoneId", ${m.ruleId} as "ruleId", array_agg(${m.total} order by ${m.day}) as totals,
      (extract(epoch from min(${m.day}) filter (where ${m.total} > 0)) / 3600)::integer as "firstHour"
    from ${askedSeries(series)}
    cross join lateral (select coalesce(
      (select min(${w.startsAt}) from ${coverageWindows} ${w} where ${w.zoneId} = asked.zone_id),
      (select min(${b.startsAt}) from ${ruleBuckets} ${b}
        where ${b.zoneId} = asked.zone_id and ${b.ruleId} = asked.rule_id and ${b.width} = 3600)) as at) as begin
    join ${ruleMetrics} ${m} on ${m.zoneId} = asked.zone_id and ${m.ruleId} = asked.rule_id
      and ${m.day} < (begin.at at time zone 'UTC')::date
    group by ${m.zoneId}, ${m.ruleId}`);
  return found.rows;
}

interface DayBeyond {
  readonly ruleId: string;
  /** `yyyy-MM-dd`. */
  readonly day: string;
  readonly upstream: number;
  readonly stored: number;
}

export interface DailyComparison {
  /** Number of daily counts of rules that could be compared. */
  readonly compared: number;
  readonly beyond: readonly DayBeyond[];
}

/**
 * Returns the days of [fromMs, toMs) on which the platform counts more events of a rule than are stored, among the
 * days whose 24 hours are all sealed. The platform's counts may lag, so a lower count is ignored. Without `ruleIds`:
 * of every rule.
 */
export async function compareDays(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs, ruleIds }: { fromMs: number; toMs: number; ruleIds?: readonly string[] },
): Promise<DailyComparison> {
  const span = sql`zone_id = ${zoneId} and starts_at >= to_timestamp(${fromMs / 1_000}::float8)
    and starts_at < to_timestamp(${toMs / 1_000}::float8)`;
  const ofRules = ruleIds === undefined ? sql`` : sql`and ${m.ruleId} = any(${sql.param(ruleIds)}::text[])`;
  const found = await db.execute<{ compared: number; beyond: DayBeyond[] }>(sql`
    with whole as (
      select (${w.startsAt} at time zone 'UTC')::date as day from ${coverageWindows} ${w}
      where ${span} and ${w.state} = 'sealed' group by 1 having count(*) = 24
    ), compared as (
      select ${m.ruleId}, ${m.day}, ${m.total} as upstream, coalesce(${b.total}, 0) as stored
      from whole join ${ruleMetrics} ${m} on ${m.zoneId} = ${zoneId} and ${m.day} = whole.day ${ofRules}
      left join ${ruleBuckets} ${b} on ${b.zoneId} = ${m.zoneId} and ${b.ruleId} = ${m.ruleId} and ${b.width} = 86400
        and ${b.startsAt} = ${m.day}::timestamp at time zone 'UTC'
    )
    select count(*)::integer as compared, coalesce(json_agg(json_build_object('ruleId', rule_id, 'day', day,
      'upstream', upstream, 'stored', stored) order by day, rule_id) filter (where upstream > stored), '[]'::json) as beyond
    from compared`);
  return found.rows[0] ?? { compared: 0, beyond: [] };
}

/** The two counts of one rule on one day. A count is null if its side has none. */
export interface DayOfRule {
  /** `yyyy-MM-dd`. */
  readonly day: string;
  readonly ruleId: string;
  readonly platform: number | null;
  /** When the platform returned the count; epoch ms. */
  readonly fetchedAt: number | null;
  readonly stored: number;
}

/** With more stale minutes than this the comparison of the day waits for the roll-up. */
const MAX_STALE_MINUTES = 500;

/**
 * Returns every rule on these days that the platform's metrics or the roll-up contain. Stale minutes are counted
 * here; a day with many of them is left out.
 */
export async function readDaysOfRules(
  db: Queryable,
  zoneId: number,
  days: readonly string[],
): Promise<DayOfRule[]> {
  if (days.length === 0) return [];
  const { rows } = await db.execute<{ [Key in keyof DayOfRule]: DayOfRule[Key] }>(sql`
    with stale as (
      select (${d.minute} at time zone 'UTC')::date as day, ${d.ruleId}, ${d.minute} from ${dirtyBuckets} ${d}
      where ${d.zoneId} = ${zoneId}
        and (${d.minute} at time zone 'UTC')::date = any(${sql.param([...days])}::date[])),
    asked as (
      select given.day from unnest(${sql.param([...days])}::date[]) as given(day)
      where (select count(*) from stale where stale.day = given.day) <= ${MAX_STALE_MINUTES}),
    there as (
      select ${m.day}, ${m.ruleId}, ${m.total}, ${m.fetchedAt}
      from ${ruleMetrics} ${m} join asked using (${names(m.day)}) where ${m.zoneId} = ${zoneId}),
    here as (
      select day, rule_id, sum(total)::integer as total from (
        select day, ${b.ruleId}, ${b.total} from asked join ${ruleBuckets} ${b}
          on ${b.zoneId} = ${zoneId} and ${b.width} = 86400 and ${b.startsAt} = day::timestamp at time zone 'UTC'
        union all
        select day, rule_id, (select count(*) from ${wafEvents} ${e} where ${e.zoneId} = ${zoneId}
            and ${e.ruleId} is not distinct from nullif(stale.rule_id, '')
            and ${e.occurredAt} >= minute and ${e.occurredAt} < minute + interval '1 minute')
          - coalesce((select ${b.total} from ${ruleBuckets} ${b}
            where ${b.zoneId} = ${zoneId} and ${b.ruleId} = stale.rule_id
              and ${b.width} = 60 and ${b.startsAt} = minute), 0)
        from stale join asked using (day)) as counted
      group by day, rule_id)
    select day::text, rule_id as "ruleId", there.total as platform,
      ${epochMs(sql`there.fetched_at`)} as "fetchedAt", coalesce(here.total, 0) as stored
    from there full join here using (day, rule_id) order by day, rule_id`);
  return rows;
}

/** Makes these rules' metrics due again, not later than `dueAtMs`. */
export async function askRulesAgain(
  db: Queryable,
  zoneId: number,
  ruleIds: readonly string[],
  dueAtMs: number,
): Promise<void> {
  const dueAt = new Date(dueAtMs);
  await db
    .update(s)
    .set({ dueAt })
    .where(
      sql`${s.zoneId} = ${zoneId} and ${s.ruleId} = any(${sql.param([...ruleIds])}::text[]) and ${s.dueAt} > ${dueAt}`,
    );
}
