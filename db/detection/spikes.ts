import { and, asc, eq, gt, gte, inArray, isNull, lte, or, type SQL, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import type { SeriesKey } from "#model/fingerprint.ts";
import { type HourState, RULE_SPIKE_KINDS, type RuleSpikeKind } from "#model/kinds.ts";
import { isRuleKind } from "#model/rules.ts";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { dirtyBuckets } from "../schema/ingest.ts";
import { ruleBuckets, rulePeaks } from "../schema/rules.ts";
import { spikes } from "../schema/spikes.ts";
import { askedSeries } from "./trends.ts";

const b = alias(ruleBuckets, "b");
const d = alias(dirtyBuckets, "d");
const s = alias(spikes, "s");
const p = alias(rulePeaks, "p");

export interface MinuteCounts extends SeriesKey {
  /** Minutes with events, since the epoch, ascending, and the number of events of each. */
  readonly minutes: readonly number[];
  readonly counts: readonly number[];
}

/**
 * Returns the series of one zone or of all with at least `atLeast` events in the minutes of [fromMs, toMs), and those that
 * have an open spike.
 */
export async function readMinuteCounts(
  db: Queryable,
  { fromMs, toMs, atLeast, zoneId }: { fromMs: number; toMs: number; atLeast: number; zoneId?: number },
): Promise<MinuteCounts[]> {
  const found = await db.execute<MinuteCounts & Record<string, unknown>>(sql`
    select ${b.zoneId} as "zoneId", ${b.ruleId} as "ruleId",
      array_agg((extract(epoch from ${b.startsAt}) / 60)::integer order by ${b.startsAt}) as minutes,
      array_agg(${b.total} order by ${b.startsAt}) as counts
    from ${ruleBuckets} ${b}
    where ${b.width} = 60 and ${b.startsAt} >= to_timestamp(${fromMs / 1_000})
      and ${b.startsAt} < to_timestamp(${toMs / 1_000})${isZone(b.zoneId, zoneId)}
    group by ${b.zoneId}, ${b.ruleId}
    having sum(${b.total}) >= ${atLeast}
      or exists (select from ${spikes} ${s} where ${s.closedAt} is null
        and ${s.zoneId} = ${b.zoneId} and ${s.ruleId} = ${b.ruleId})
    order by ${b.zoneId}, ${b.ruleId}`);
  return found.rows;
}

function isZone(column: PgColumn, zoneId: number | undefined): SQL {
  return zoneId === undefined ? sql`` : sql` and ${column} = ${zoneId}`;
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
      select (extract(epoch from min(${b.startsAt})) / 3600)::integer as hour from ${ruleBuckets} ${b}
      where ${b.zoneId} = asked.zone_id and ${b.ruleId} = asked.rule_id and ${b.width} = 3600) as first
    cross join lateral (
      select coalesce(json_agg(json_build_array((extract(epoch from ${p.startsAt}) / 3600)::integer,
          ${p.events}, ${p.peak3}, ${p.peak15}, ${p.peak60}) order by ${p.startsAt}), '[]'::json) as list
      from ${rulePeaks} ${p}
      where ${p.zoneId} = asked.zone_id and ${p.ruleId} = asked.rule_id
        and ${p.startsAt} >= to_timestamp(${fromHour}::float8 * 3600)
        and ${p.startsAt} < to_timestamp(${toHour}::float8 * 3600)) as hours`);
  return found.rows;
}

/** Returns the series with stale minutes in [fromMs, toMs). The next roll-up changes their hours. */
export async function readStaleSeries(
  db: Queryable,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<SeriesKey[]> {
  const found = await db.execute<{ zoneId: number; ruleId: string }>(sql`
    select distinct ${d.zoneId} as "zoneId", ${d.ruleId} as "ruleId" from ${dirtyBuckets} ${d}
    where ${d.minute} >= to_timestamp(${fromMs / 1_000}) and ${d.minute} < to_timestamp(${toMs / 1_000})`);
  return found.rows;
}

/** Returns the coverage of the hours of one zone or of all that begin in (afterMs, untilMs], zone by zone, the oldest first. */
export async function readSearchedThrough(
  db: Queryable,
  { afterMs, untilMs, zoneId }: { afterMs: number; untilMs: number; zoneId?: number },
): Promise<(HourCoverage & { readonly zoneId: number })[]> {
  // One text per zone: a week of hundreds of zones is so many rows that the driver takes longer than the database.
  const { rows } = await db.execute<{ zoneId: number; hours: string }>(sql`
    select ${coverageWindows.zoneId} as "zoneId",
      string_agg(concat_ws(' ', ${coverageWindows.state}, date_part('epoch', ${coverageWindows.startsAt})::bigint,
      round(date_part('epoch', ${coverageWindows.searchedThrough}) * 1000)::bigint), ','
        order by ${coverageWindows.startsAt}) as hours
    from ${coverageWindows}
    where ${coverageWindows.startsAt} > to_timestamp(${afterMs}::float8 / 1000)
      and ${coverageWindows.startsAt} <= to_timestamp(${untilMs}::float8 / 1000)${isZone(coverageWindows.zoneId, zoneId)}
    group by ${coverageWindows.zoneId} order by ${coverageWindows.zoneId}`);
  return rows.flatMap(({ zoneId, hours }) =>
    hours.split(",").map((text) => {
      const [state, second, through] = text.split(" ") as [HourState, string, string | undefined];
      const searchedThroughMs = through === undefined ? null : Number(through);
      return { zoneId, state, startsAtMs: Number(second) * 1_000, searchedThroughMs };
    }),
  );
}

/** The coverage of an hour; times in epoch ms. */
export interface HourCoverage {
  readonly startsAtMs: number;
  readonly searchedThroughMs: number | null;
  readonly state: HourState;
}

export type SpikeRow = typeof spikes.$inferSelect;
export type NewSpike = typeof spikes.$inferInsert;

/** A rule's spike. */
export type RuleSpikeRow = SpikeRow & { readonly kind: RuleSpikeKind };

function select(db: Queryable, ...conditions: (SQL | undefined)[]): Promise<SpikeRow[]> {
  return db
    .select()
    .from(spikes)
    .where(and(...conditions))
    .orderBy(asc(spikes.id));
}

/** Returns the open spikes of rules. */
export async function readOpenSpikes(db: Queryable): Promise<RuleSpikeRow[]> {
  const rows = await select(db, isNull(spikes.closedAt), inArray(spikes.kind, RULE_SPIKE_KINDS));
  return rows.filter((row): row is RuleSpikeRow => isRuleKind(row.kind));
}

/** Returns the open incidents. */
export function readOpenSources(db: Queryable): Promise<SpikeRow[]> {
  return select(db, isNull(spikes.closedAt), eq(spikes.kind, "sources"));
}

/** Returns the incidents that closed after `afterMs`, the oldest first. */
export function readClosedSources(db: Queryable, afterMs: number): Promise<SpikeRow[]> {
  const isRecent = gt(spikes.closedAt, new Date(afterMs));
  return select(db, isRecent, eq(spikes.kind, "sources"), eq(spikes.isLate, false));
}

/** Returns the spikes of a zone that were open at a time of [fromMs, toMs), also those that were found late. */
export function readSpikesBetween(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<SpikeRow[]> {
  const isOpen = or(isNull(spikes.closedAt), gte(spikes.closedAt, new Date(fromMs)));
  return select(db, eq(spikes.zoneId, zoneId), lte(spikes.openedAt, new Date(toMs)), isOpen);
}

/** Closes the spikes of sources, because nobody judges them any more. Returns how many were open. */
export async function closeSources(db: Queryable, atMs: number): Promise<number> {
  const { rowCount } = await db
    .update(spikes)
    // A replica whose clock is slow must not close an incident before it opened.
    .set({ closedAt: sql`greatest(${spikes.openedAt}, ${new Date(atMs)})` })
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
    .where(and(gt(spikes.closedAt, new Date(afterMs)), eq(spikes.isLate, false)))
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
    openedAt: Math.ceil(row.openedAt.getTime() / 60_000),
    lastActiveAt: Math.ceil(row.lastActiveAt.getTime() / 60_000),
  }));
}

/**
 * Inserts a spike and returns its id. Returns null if the series already has an open spike because another replica
 * was first. Also returns null if the series has a spike that closed later than this one opens: another replica was
 * so much faster that the attack is over and has been notified.
 */
export async function openSpike(db: Queryable, spike: NewSpike): Promise<number | null> {
  const { zoneId, ruleId, incident, closedAt, isLate } = spikes;
  const isNotifiedAlready = and(
    eq(zoneId, spike.zoneId),
    eq(ruleId, spike.ruleId),
    eq(incident, spike.incident ?? ""),
    gte(closedAt, spike.openedAt),
    eq(isLate, false),
  );
  if ((await db.$count(spikes, isNotifiedAlready)) > 0) return null;
  const opened = await db
    .insert(spikes)
    .values(spike)
    .onConflictDoNothing({
      target: [spikes.zoneId, spikes.ruleId, spikes.incident],
      where: sql`closed_at is null`,
    })
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

/** The columns of an open spike of a rule that change. */
const CHANGED = [
  "closedAt",
  "lastActiveAt",
  "judgedThrough",
  "baseline",
  "threshold",
  "score",
  "peak",
  "windowCount",
  "windowMinutes",
  "addresses",
  "mainSenders",
  "gradedBy",
  "memberOf",
  "severity",
  "kind",
] as const;

/** The new state of an open spike of a rule; `closedAt` in it closes the spike. Null: its evidence stays. */
export type SpikeChange = Pick<SpikeRow, "id" | (typeof CHANGED)[number]> & {
  readonly evidence: SpikeRow["evidence"] | null;
};

/**
 * Stores the new states of open spikes with one statement, and returns the ids of those that were stored. As with
 * `updateSpike`, a spike is left unchanged if another replica was faster.
 */
export async function updateSpikes(
  db: Queryable,
  changes: readonly SpikeChange[],
): Promise<ReadonlySet<number>> {
  if (changes.length === 0) return new Set();
  const ofEach = (term: (name: (typeof CHANGED)[number]) => SQL) => sql.join(CHANGED.map(term), sql`, `);
  // Rows are locked in the order of ids, because another replica may change the same spikes at this moment.
  const { rows } = await db.execute<{ id: string }>(sql`
    with changes as materialized (
      select * from jsonb_to_recordset(${JSON.stringify(changes)}::jsonb)
        as c(id bigint, evidence jsonb, ${ofEach((name) => sql`${sql.identifier(name)} ${sql.raw(s[name].getSQLType())}`)})),
    locked as materialized (
      select ${s.id} from ${spikes} ${s}
      where ${s.id} in (select id from changes) and ${s.closedAt} is null order by ${s.id} for no key update)
    update ${spikes} ${s} set ${ofEach((name) => sql`${names(s[name])} = c.${sql.identifier(name)}`)},
      ${names(s.evidence)} = coalesce(c.evidence, ${s.evidence})
    from changes c join locked using (${names(s.id)})
    where ${s.id} = c.id and ${s.closedAt} is null and ${s.judgedThrough} <= c."judgedThrough"
    returning ${s.id}`);
  return new Set(rows.map(({ id }) => Number(id)));
}

/** A spike that was found late. `id` is that of the one that it replaces, which an earlier replay has found; null if none. */
export type LateSpike = Omit<NewSpike, "id"> & { readonly id: number | null; readonly isLate: true };

/** Stores spikes that were found late. A replaced one keeps its mark. */
export async function insertLateSpikes(tx: Queryable, found: readonly LateSpike[]): Promise<void> {
  for (const { id, ...spike } of found) {
    const isReplaced = and(eq(spikes.id, id ?? 0), eq(spikes.isLate, true));
    await (id === null ? tx.insert(spikes).values(spike) : tx.update(spikes).set(spike).where(isReplaced));
  }
}
