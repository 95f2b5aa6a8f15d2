/** Coverage as it is read by people, by hour and by day. */
import { and, eq, getTableColumns, gte, lt, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { CoverageHour } from "#model/covered-hour.ts";
import type { Queryable } from "../client.ts";
import { judged } from "../detection/judged-hours.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { judgedHours } from "../schema/sources.ts";

const j = alias(judgedHours, "j");
const IS_JUDGED = judged(j, sql`${coverageWindows.storedCount}`);

/**
 * Returns the hours with a row that begin in [from, to), epoch ms, oldest first. Without the evidence, which is most of a
 * row, `evidence` is null.
 */
export async function readCoverageHours(
  db: Queryable,
  zoneId: number,
  { from, to, hasEvidence = true }: { from: number; to: number; hasEvidence?: boolean },
): Promise<CoverageHour[]> {
  const { passes: _, evidence, ...columns } = getTableColumns(coverageWindows);
  const rows = await db
    .select({
      ...columns,
      evidence: hasEvidence ? evidence : sql<unknown>`null`,
      judgedAt: sql<number | null>`case when ${IS_JUDGED} then ${epochMs(j.judgedAt)} end`,
      judgedWith: sql<string | null>`case when ${IS_JUDGED} then ${j.judgedWith} end`,
    })
    .from(coverageWindows)
    .leftJoin(j, and(eq(j.zoneId, coverageWindows.zoneId), eq(j.startsAt, coverageWindows.startsAt)))
    .where(
      and(
        eq(coverageWindows.zoneId, zoneId),
        gte(coverageWindows.startsAt, new Date(from)),
        lt(coverageWindows.startsAt, new Date(to)),
      ),
    )
    .orderBy(coverageWindows.startsAt);
  return rows.map(({ zoneId: _zoneId, ...row }) => ({
    ...row,
    startsAt: row.startsAt.getTime(),
    searchedThrough: row.searchedThrough?.getTime() ?? null,
    lastNewAt: row.lastNewAt?.getTime() ?? null,
    closingSearchAt: row.closingSearchAt?.getTime() ?? null,
    reconciledAt: row.reconciledAt?.getTime() ?? null,
    sealedAt: row.sealedAt?.getTime() ?? null,
    reopenedAt: row.reopenedAt?.getTime() ?? null,
    proofFrom: row.proofFrom?.getTime() ?? null,
    unresolvedSince: row.unresolvedSince?.getTime() ?? null,
  }));
}

export interface KnownZone {
  readonly zoneId: number;
  /** Start of the first known hour, epoch ms. */
  readonly firstHour: number;
}

/** Returns every zone with a known hour, by id, or only `zoneId` if it is among them. */
export async function listKnownZones(db: Queryable, zoneId?: number): Promise<KnownZone[]> {
  const rows = await db
    .select({ zoneId: coverageWindows.zoneId, firstHour: sql<string>`min(${coverageWindows.startsAt})` })
    .from(coverageWindows)
    .where(zoneId === undefined ? undefined : eq(coverageWindows.zoneId, zoneId))
    .groupBy(coverageWindows.zoneId)
    .orderBy(coverageWindows.zoneId);
  return rows.map((row) => ({ zoneId: row.zoneId, firstHour: new Date(row.firstHour).getTime() }));
}

interface CoverageDay {
  readonly zoneId: number;
  readonly day: string;
  readonly sealed: number;
  readonly open: number;
  readonly gap: number;
  /** Gaps that nobody could have prevented. They are not in `gap`. */
  readonly unwatched: number;
  readonly stored: number;
}

/** Returns the hours of each UTC day by state, oldest first. A day without a recorded hour is left out. */
export async function readCoverageDays(
  db: Queryable,
  query: {
    readonly zoneIds: readonly number[] | null;
    readonly fromMs: number;
    readonly toMs: number;
    readonly unwatched: readonly string[];
  },
): Promise<CoverageDay[]> {
  const { zoneIds, fromMs, toMs, unwatched } = query;
  const { zoneId, startsAt, state, gapReason, storedCount } = coverageWindows;
  const isUnwatched = sql`(${gapReason} is not null and ${gapReason} = any(${sql.param([...unwatched])}::text[]))`;
  const hours = (condition: SQL) => sql<number>`count(*) filter (where ${condition})::integer`;
  return db
    .select({
      zoneId,
      day: sql<string>`((${startsAt} at time zone 'UTC')::date)::text`,
      sealed: hours(sql`${state} = 'sealed'`),
      open: hours(sql`${state} = 'open'`),
      gap: hours(sql`${state} = 'gap' and not ${isUnwatched}`),
      unwatched: hours(sql`${state} = 'gap' and ${isUnwatched}`),
      stored: sql<number>`coalesce(sum(${storedCount}), 0)::float8`,
    })
    .from(coverageWindows)
    .where(
      and(
        gte(startsAt, new Date(fromMs)),
        lt(startsAt, new Date(toMs)),
        zoneIds === null ? undefined : sql`${zoneId} = any(${sql.param([...zoneIds])}::integer[])`,
      ),
    )
    .groupBy(sql`1, 2`)
    .orderBy(sql`1, 2`);
}

const w = alias(coverageWindows, "w");

/** Coverage problems of one zone; times in epoch ms. */
export interface CoverageTrouble {
  readonly zoneId: number;
  /**
   * Start of the oldest undecided hour that has ended; null when every hour is decided. Without the first two hours of
   * the zone, which the platform had begun to forget when the zone was first watched.
   */
  readonly oldestOpenAt: number | null;
  /** When the first hour of the zone was decided; null before that. */
  readonly firstSealAt: number | null;
  /** Hours that became gaps together, in the order in which they became gaps. */
  readonly gaps: readonly GapBatch[];
}

interface GapBatch {
  readonly decidedAt: number;
  readonly hours: number;
  /** Start of the first hour and end of the last. */
  readonly from: number;
  readonly to: number;
}

interface TroubleQuery {
  readonly zoneIds: readonly number[];
  /** Undecided hours that begin before this have ended. */
  readonly openBeforeMs: number;
  /** Hours that begin before this, and gaps decided before it, are ignored. */
  readonly sinceMs: number;
  /** Gaps with these reasons are ignored. */
  readonly exceptReasons: readonly string[];
}

/** Returns the coverage problems of each of these zones that has a known hour, by id. */
export async function readCoverageTrouble(db: Queryable, query: TroubleQuery): Promise<CoverageTrouble[]> {
  const { openBeforeMs, sinceMs, exceptReasons } = query;
  const since = new Date(sinceMs);
  const isAsked = sql`${w.zoneId} = any(${sql.param([...query.zoneIds])}::integer[]) and ${w.startsAt} >= ${since}`;
  const isOpen = sql`${w.state} = 'open' and ${w.startsAt} < ${new Date(openBeforeMs)}`;
  const zones = await db.execute<Omit<CoverageTrouble, "gaps">>(sql`
    select ${w.zoneId} as "zoneId", ${epochMs(sql`min(${w.sealedAt})`)} as "firstSealAt",
      ${epochMs(sql`min(${w.startsAt}) filter (where ${isOpen} and ${w.startsAt} >= first_at + interval '2 hours')`)}
        as "oldestOpenAt"
    from unnest(${sql.param([...query.zoneIds])}::integer[]) as z(id)
    cross join lateral (select min(${w.startsAt}) as first_at from ${coverageWindows} ${w} where ${w.zoneId} = z.id) f
    join ${coverageWindows} ${w} on ${w.zoneId} = z.id and ${w.startsAt} >= ${since}
    group by ${w.zoneId} order by ${w.zoneId}`);
  const gaps = await db
    .select({
      zoneId: w.zoneId,
      decidedAt: epochMs(sql`${w.sealedAt}`),
      hours: sql<number>`count(*)::integer`,
      from: epochMs(sql`min(${w.startsAt})`),
      to: epochMs(sql`max(${w.startsAt}) + interval '1 hour'`),
    })
    .from(w)
    .where(
      sql`${isAsked} and ${w.state} = 'gap' and ${w.sealedAt} > ${since}
        and ${w.gapReason} <> all(${sql.param([...exceptReasons])}::text[])`,
    )
    .groupBy(w.zoneId, w.sealedAt)
    .orderBy(w.sealedAt);
  const byZone = Map.groupBy(gaps, ({ zoneId }) => zoneId);
  return zones.rows.map((zone) => ({
    ...zone,
    gaps: (byZone.get(zone.zoneId) ?? []).map(({ zoneId: _zoneId, ...gap }) => gap),
  }));
}
