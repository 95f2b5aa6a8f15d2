/** Counts of a rule by bucket, as trends, replays and metrics read them. */
import { and, asc, eq, gte, inArray, isNull, lt, or, type SQL, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import type { SeriesKey } from "#model/fingerprint.ts";
import { toDay } from "#model/horizon.ts";
import { toMoment } from "../archive/search-condition.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive.ts";
import { wafEvents } from "../schema/events.ts";
import { dirtyBuckets } from "../schema/ingest.ts";
import { ruleBuckets } from "../schema/rules.ts";
import { CLASS_COUNTS, VERB } from "./roll-up.ts";

export interface TrendQuery {
  /** A zone, or several. */
  readonly zoneId: number | readonly number[];
  /** Null sums all rules; '' selects the events without a rule. */
  readonly ruleId: string | null;
  /** Seconds. */
  readonly width: 60 | 3_600 | 86_400;
  readonly fromMs: number;
  readonly toMs: number;
}

interface TrendBucket {
  readonly zoneId: number;
  /** Epoch ms. */
  readonly startsAt: number;
  readonly total: number;
  readonly blocked: number;
  readonly logged: number;
  readonly challenged: number;
  readonly other: number;
}

/** Returns the buckets of each zone that hold events and begin in [fromMs, toMs), oldest first. */
export function readTrend(db: Queryable, query: TrendQuery): Promise<TrendBucket[]> {
  const { ruleId, width, fromMs, toMs } = query;
  const { zoneId, startsAt, total, blocked, logged, challenged, other } = ruleBuckets;
  const sum = (column: PgColumn) => sql<number>`sum(${column})::float8`;
  return db
    .select({
      zoneId,
      startsAt: epochMs(startsAt),
      total: sum(total),
      blocked: sum(blocked),
      logged: sum(logged),
      challenged: sum(challenged),
      other: sum(other),
    })
    .from(ruleBuckets)
    .where(
      and(
        inArray(zoneId, [query.zoneId].flat()),
        eq(ruleBuckets.width, width),
        gte(startsAt, new Date(fromMs)),
        lt(startsAt, new Date(toMs)),
        ruleId === null ? undefined : eq(ruleBuckets.ruleId, ruleId),
      ),
    )
    .groupBy(zoneId, startsAt)
    .orderBy(zoneId, startsAt);
}

const b = alias(ruleBuckets, "b");

/** Returns the zone's rules that have events in minutes of [fromMs, toMs). */
export async function readActiveRules(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<string[]> {
  const { startsAt, width, ruleId } = ruleBuckets;
  const rows = await db
    .selectDistinct({ ruleId })
    .from(ruleBuckets)
    .where(
      and(
        eq(ruleBuckets.zoneId, zoneId),
        eq(width, 60),
        gte(startsAt, new Date(fromMs)),
        lt(startsAt, new Date(toMs)),
      ),
    )
    .orderBy(asc(ruleId));
  return rows.map((row) => row.ruleId);
}

/**
 * Returns the minutes (since the epoch) with events in [fromMs, toMs), and the first minute that is known before
 * them, ascending.
 */
export async function readReplayCounts(
  db: Queryable,
  { zoneId, ruleId }: SeriesKey,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<{ minute: number; count: number }[]> {
  const { startsAt, width, total } = ruleBuckets;
  const first = sql`(select min(${b.startsAt}) from ${ruleBuckets} ${b}
    where ${b.zoneId} = ${zoneId} and ${b.ruleId} = ${ruleId} and ${b.width} = 60)`;
  const rows = await db
    .select({ startsAt, count: total })
    .from(ruleBuckets)
    .where(
      and(
        eq(ruleBuckets.zoneId, zoneId),
        eq(ruleBuckets.ruleId, ruleId),
        eq(width, 60),
        or(gte(startsAt, new Date(fromMs)), eq(startsAt, first)),
        lt(startsAt, new Date(toMs)),
      ),
    )
    .orderBy(asc(startsAt));
  return rows.map((row) => ({ minute: row.startsAt.getTime() / 60_000, count: row.count }));
}

/**
 * Returns the start of the first day (epoch ms) from which on all minutes of these zones are kept; null if all are. Minutes
 * of old archive days, those before `keptFrom` (epoch ms), are deleted; hours and days are not.
 */
export async function readMinutesFrom(
  db: Queryable,
  zoneId: number | readonly number[],
  keptFrom: number,
): Promise<number | null> {
  const { day, kind, retiredAt } = archiveFiles;
  const [row] = await db
    .select({ at: epochMs(sql<string | null>`(max(${day}) + 1)::timestamp at time zone 'UTC'`) })
    .from(archiveFiles)
    .where(
      and(
        inArray(archiveFiles.zoneId, [zoneId].flat()),
        lt(day, toDay(keptFrom)),
        eq(kind, "events"),
        isNull(retiredAt),
      ),
    );
  return row?.at ?? null;
}

const d = alias(dirtyBuckets, "d");
const e = alias(wafEvents, "e");

export interface RuleDay {
  /** Start of the UTC day, epoch ms. */
  readonly startsAt: number;
  readonly total: number;
  readonly blocked: number;
  readonly logged: number;
  readonly challenged: number;
}

/**
 * Returns how often a rule was triggered on each UTC day of [from, to), epoch ms of days' starts. Days without events
 * are missing. Days are read from the roll-up. For each minute that is stale there, the stale count is subtracted and
 * the minute's events are counted instead, so the answer matches the stored events.
 */
export async function readRuleDays(
  db: Queryable,
  { zoneId, ruleId }: { zoneId: number; ruleId: string },
  { from, to }: { from: number; to: number },
): Promise<RuleDay[]> {
  const span = (column: PgColumn) => sql`${column} >= ${toMoment(from)} and ${column} < ${toMoment(to)}`;
  const found = await db.execute<RuleDay & Record<string, unknown>>(sql`
    with stale as materialized (
      select ${d.minute} from ${dirtyBuckets} ${d}
      where ${d.zoneId} = ${zoneId} and ${d.ruleId} = ${ruleId} and ${span(d.minute)}),
    parts as (
      select ${b.startsAt} as day, ${b.total}, ${b.blocked}, ${b.logged}, ${b.challenged} from ${ruleBuckets} ${b}
      where ${b.zoneId} = ${zoneId} and ${b.ruleId} = ${ruleId} and ${b.width} = 86400 and ${span(b.startsAt)}
      union all
      select date_trunc('day', minute), -${b.total}, -${b.blocked}, -${b.logged}, -${b.challenged}
      from stale join ${ruleBuckets} ${b}
        on ${b.zoneId} = ${zoneId} and ${b.ruleId} = ${ruleId} and ${b.width} = 60 and ${b.startsAt} = minute
      union all
      select date_trunc('day', minute), n.* from stale cross join lateral (
        select ${CLASS_COUNTS} from (
          select ${VERB} as verb from ${wafEvents} ${e}
          where ${e.zoneId} = ${zoneId} and ${e.occurredAt} >= minute
            and ${e.occurredAt} < minute + interval '1 minute' and coalesce(${e.ruleId}, '') = ${ruleId}) e) n)
    select ${epochMs(sql`day`)} as "startsAt", sum(total)::float8 as total,
      sum(blocked)::float8 as blocked, sum(logged)::float8 as logged, sum(challenged)::float8 as challenged
    from parts group by day having sum(total) > 0 order by day`);
  return found.rows;
}

/** Returns a table `asked(zone_id, rule_id)` of these series, for the `from` of a statement. */
export function askedSeries(series: readonly SeriesKey[]): SQL {
  const zones = sql.param(series.map(({ zoneId }) => zoneId));
  const rules = sql.param(series.map(({ ruleId }) => ruleId));
  return sql`unnest(${zones}::integer[], ${rules}::text[]) as asked(zone_id, rule_id)`;
}
