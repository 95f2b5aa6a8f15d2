import { and, asc, eq, gt, gte, isNull, lte, ne, sql } from "drizzle-orm";
import type { HourState } from "#model/kinds.ts";
import type { SeriesKey } from "#model/series-key.ts";
import type { Queryable } from "../client.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { spikes } from "../schema/spikes.ts";
import { askedSeries } from "./asked-series.ts";

export interface MinuteCounts extends SeriesKey {
  /** Minutes with events, since the epoch, ascending, and the number of events of each. */
  readonly minutes: readonly number[];
  readonly counts: readonly number[];
}

/**
 * Returns the series with at least `atLeast` events in the minutes of [fromMs, toMs), and those that have an open
 * spike.
 */
export async function readMinuteCounts(
  db: Queryable,
  { fromMs, toMs, atLeast }: { fromMs: number; toMs: number; atLeast: number },
): Promise<MinuteCounts[]> {
  const found = await db.execute<MinuteCounts & Record<string, unknown>>(sql`
    select zone_id as "zoneId", rule_id as "ruleId",
      array_agg((extract(epoch from starts_at) / 60)::integer order by starts_at) as minutes,
      array_agg(total order by starts_at) as counts
    from rule_buckets
    where width = 60 and starts_at >= to_timestamp(${fromMs / 1_000}) and starts_at < to_timestamp(${toMs / 1_000})
    group by zone_id, rule_id
    having sum(total) >= ${atLeast}
      or exists (select from spikes s where s.closed_at is null
        and s.zone_id = rule_buckets.zone_id and s.rule_id = rule_buckets.rule_id)
    order by zone_id, rule_id`);
  return found.rows;
}

export interface HourCounts extends SeriesKey {
  /** Hour of the rule's first event, since the epoch; null if it has none. */
  readonly firstHour: number | null;
  /** One entry per hour with a row: hour since the epoch, events, and the peaks of 3, 15 and 60 minutes. */
  readonly hours: readonly (readonly [
    hour: number,
    events: number,
    peak3: number,
    peak15: number,
    peak60: number,
  ])[];
}

/** Returns the stored hours of each series in [fromHour, toHour), one row per requested series. */
export async function readHourCounts(
  db: Queryable,
  series: readonly SeriesKey[],
  { fromHour, toHour }: { fromHour: number; toHour: number },
): Promise<HourCounts[]> {
  const found = await db.execute<HourCounts & Record<string, unknown>>(sql`
    select zone_id as "zoneId", rule_id as "ruleId", first.hour as "firstHour", hours.list as hours
    from ${askedSeries(series)}
    cross join lateral (
      select (extract(epoch from min(b.starts_at)) / 3600)::integer as hour from rule_buckets b
      where b.zone_id = asked.zone_id and b.rule_id = asked.rule_id and b.width = 3600) as first
    cross join lateral (
      select coalesce(json_agg(json_build_array((extract(epoch from p.starts_at) / 3600)::integer,
          p.events, p.peak3, p.peak15, p.peak60) order by p.starts_at), '[]'::json) as list
      from rule_peaks p
      where p.zone_id = asked.zone_id and p.rule_id = asked.rule_id
        and p.starts_at >= to_timestamp(${fromHour}::float8 * 3600)
        and p.starts_at < to_timestamp(${toHour}::float8 * 3600)) as hours`);
  return found.rows;
}

/** Returns the series with stale minutes in [fromMs, toMs). The next roll-up changes their hours. */
export async function readStaleSeries(
  db: Queryable,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<SeriesKey[]> {
  const found = await db.execute<{ zoneId: number; ruleId: string }>(sql`
    select distinct zone_id as "zoneId", rule_id as "ruleId" from dirty_buckets
    where minute >= to_timestamp(${fromMs / 1_000}) and minute < to_timestamp(${toMs / 1_000})`);
  return found.rows;
}

/** Returns the coverage of every zone's hours that begin in (afterMs, untilMs], zone by zone, the oldest first. */
export async function readSearchedThrough(
  db: Queryable,
  { afterMs, untilMs }: { afterMs: number; untilMs: number },
): Promise<CoveredHour[]> {
  // One text per zone: a week of hundreds of zones is so many rows that the driver takes longer than the database.
  const { rows } = await db.execute<{ zoneId: number; hours: string }>(sql`
    select zone_id as "zoneId", string_agg(concat_ws(' ', state, date_part('epoch', starts_at)::bigint,
      round(date_part('epoch', searched_through) * 1000)::bigint), ',' order by starts_at) as hours
    from ${coverageWindows}
    where starts_at > to_timestamp(${afterMs}::float8 / 1000) and starts_at <= to_timestamp(${untilMs}::float8 / 1000)
    group by zone_id order by zone_id`);
  return rows.flatMap(({ zoneId, hours }) =>
    hours.split(",").map((text) => {
      const [state, second, through] = text.split(" ") as [CoveredHour["state"], string, string | undefined];
      const searchedThroughMs = through === undefined ? null : Number(through);
      return { zoneId, state, startsAtMs: Number(second) * 1_000, searchedThroughMs };
    }),
  );
}

interface CoveredHour {
  readonly zoneId: number;
  readonly startsAtMs: number;
  readonly searchedThroughMs: number | null;
  readonly state: HourState;
}

export type SpikeRow = typeof spikes.$inferSelect;
export type NewSpike = typeof spikes.$inferInsert;

/** A rule's spike. */
export type RuleSpikeRow = SpikeRow & { readonly kind: Exclude<SpikeRow["kind"], "sources"> };

/** Returns the open spikes of rules. */
export async function readOpenSpikes(db: Queryable): Promise<RuleSpikeRow[]> {
  const rows = await db
    .select()
    .from(spikes)
    .where(and(isNull(spikes.closedAt), ne(spikes.kind, "sources")))
    .orderBy(asc(spikes.id));
  return rows.filter((row): row is RuleSpikeRow => row.kind !== "sources");
}

/** Returns the open spikes of the zones' source series. */
export async function readOpenSources(db: Queryable): Promise<SpikeRow[]> {
  return db
    .select()
    .from(spikes)
    .where(and(isNull(spikes.closedAt), eq(spikes.kind, "sources")))
    .orderBy(asc(spikes.id));
}

/** Closes the spikes of sources, because nobody judges them any more. Returns how many were open. */
export async function closeSources(db: Queryable, atMs: number): Promise<number> {
  const { rowCount } = await db
    .update(spikes)
    .set({ closedAt: new Date(atMs) })
    .where(and(isNull(spikes.closedAt), eq(spikes.kind, "sources")));
  return rowCount ?? 0;
}

/** Returns when each series' latest spike closed, if that was after `afterMs`. */
export async function readRecentClosings(
  db: Queryable,
  afterMs: number,
): Promise<(SeriesKey & { closedAtMs: number })[]> {
  const rows = await db
    .select({ zoneId: spikes.zoneId, ruleId: spikes.ruleId, closedAt: sql<string>`max(${spikes.closedAt})` })
    .from(spikes)
    .where(gt(spikes.closedAt, new Date(afterMs)))
    .groupBy(spikes.zoneId, spikes.ruleId);
  return rows.map(({ closedAt, ...key }) => ({ ...key, closedAtMs: Date.parse(closedAt) }));
}

export interface AttackSpan extends SeriesKey {
  /** Minutes since the epoch. Times are the ends of minutes. */
  readonly openedAt: number;
  readonly lastActiveAt: number;
  readonly windowMinutes: number;
}

/** Returns the spikes marked as attacks that were active after `afterMs`, of one zone or of all. */
export async function readAttacks(
  db: Queryable,
  { afterMs, zoneId }: { afterMs: number; zoneId?: number },
): Promise<AttackSpan[]> {
  const isNew = and(eq(spikes.mark, "attack"), gt(spikes.lastActiveAt, new Date(afterMs)));
  const rows = await db
    .select({
      zoneId: spikes.zoneId,
      ruleId: spikes.ruleId,
      openedAt: spikes.openedAt,
      lastActiveAt: spikes.lastActiveAt,
      windowMinutes: spikes.windowMinutes,
    })
    .from(spikes)
    .where(zoneId === undefined ? isNew : and(isNew, eq(spikes.zoneId, zoneId)))
    .orderBy(asc(spikes.id));
  return rows.map((row) => ({
    ...row,
    openedAt: Math.floor(row.openedAt.getTime() / 60_000),
    lastActiveAt: Math.floor(row.lastActiveAt.getTime() / 60_000),
  }));
}

/**
 * Inserts a spike and returns its id. Returns null if the series already has an open spike because another replica
 * was first. Also returns null if the series has a spike that closed later than this one opens: another replica was
 * so much faster that the attack is over and has been notified.
 */
export async function openSpike(db: Queryable, spike: NewSpike): Promise<number | null> {
  const { zoneId, ruleId, closedAt } = spikes;
  const isToldAlready = and(
    eq(zoneId, spike.zoneId),
    eq(ruleId, spike.ruleId),
    gte(closedAt, spike.openedAt),
  );
  if ((await db.$count(spikes, isToldAlready)) > 0) return null;
  const opened = await db
    .insert(spikes)
    .values(spike)
    .onConflictDoNothing({ target: [spikes.zoneId, spikes.ruleId], where: sql`closed_at is null` })
    .returning({ id: spikes.id });
  return opened[0]?.id ?? null;
}

/**
 * Stores the new state of an open spike; `closedAt` in it closes the spike. Returns false and writes nothing if the
 * spike is already closed or a later minute has been judged, because another replica was faster.
 */
export async function updateSpike(
  db: Queryable,
  id: number,
  changes: Partial<NewSpike> & { judgedThrough: Date },
): Promise<boolean> {
  const updated = await db
    .update(spikes)
    .set(changes)
    .where(and(eq(spikes.id, id), isNull(spikes.closedAt), lte(spikes.judgedThrough, changes.judgedThrough)))
    .returning({ id: spikes.id });
  return updated.length > 0;
}

/** The new state of an open spike of a rule; `closedAt` in it closes the spike. Null: its evidence stays. */
export type SpikeChange = Omit<
  SpikeRow,
  "openedAt" | "zoneId" | "ruleId" | "isShadow" | "sources" | "mark" | "markedAt" | "evidence"
> & { readonly evidence: SpikeRow["evidence"] | null };

/**
 * Stores the new states of open spikes with one statement, and returns the ids of those that were stored. As with
 * `updateSpike`, a spike is left unchanged if another replica was faster.
 */
export async function updateSpikes(
  db: Queryable,
  changes: readonly SpikeChange[],
): Promise<ReadonlySet<number>> {
  if (changes.length === 0) return new Set();
  // Rows are locked in the order of ids, because another replica may change the same spikes at this moment.
  const { rows } = await db.execute<{ id: string }>(sql`
    with changes as materialized (
      select * from jsonb_to_recordset(${JSON.stringify(changes)}::jsonb) as c(id bigint, "closedAt" timestamptz,
        "lastActiveAt" timestamptz, "judgedThrough" timestamptz, baseline float8, threshold float8, score float8,
        peak integer, "windowCount" integer, "windowMinutes" integer, companions integer, addresses integer,
        "gradedBy" text, severity text, kind text, evidence jsonb)),
    locked as materialized (
      select id from spikes where id in (select id from changes) and closed_at is null order by id for no key update)
    update spikes s set closed_at = c."closedAt", last_active_at = c."lastActiveAt",
      judged_through = c."judgedThrough", baseline = c.baseline, threshold = c.threshold, score = c.score,
      peak = c.peak, window_count = c."windowCount", window_minutes = c."windowMinutes", companions = c.companions,
      addresses = c.addresses, graded_by = c."gradedBy", severity = c.severity, kind = c.kind,
      evidence = coalesce(c.evidence, s.evidence)
    from changes c join locked using (id)
    where s.id = c.id and s.closed_at is null and s.judged_through <= c."judgedThrough"
    returning s.id`);
  return new Set(rows.map(({ id }) => Number(id)));
}
