/** Coverage as it is read by people, by hour and by day. */
import { and, eq, getTableColumns, gte, inArray, lt, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { HOUR_MS } from "#lib/units.ts";
import { type CoverageHour, IMPORTED } from "#model/covered-hour.ts";
import { horizonAt, type KnownHorizon, keptFor, startOfHour } from "#model/horizon.ts";
import type { Queryable } from "../client.ts";
import { judged } from "../detection/judged-hours.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows, platformHealth } from "../schema/coverage.ts";
import { judgedHours } from "../schema/sources.ts";
import { isWatched } from "./covered-hours.ts";

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

/** Returns the state of the recorded hours of these zones that begin in [fromMs, toMs), and how far each was searched. */
export async function readHourStates(
  db: Queryable,
  zoneIds: readonly number[],
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<(Pick<CoverageHour, "startsAt" | "state" | "searchedThrough"> & { readonly zoneId: number })[]> {
  const { zoneId, startsAt, state, searchedThrough } = coverageWindows;
  return db
    .select({ zoneId, startsAt: epochMs(startsAt), state, searchedThrough: epochMs(searchedThrough) })
    .from(coverageWindows)
    .where(and(inArray(zoneId, [...zoneIds]), gte(startsAt, new Date(fromMs)), lt(startsAt, new Date(toMs))));
}

export interface KnownZone {
  readonly zoneId: number;
  /** Start of the first known hour, epoch ms. */
  readonly firstHour: number;
}

/** Returns every zone with a known hour, by id, or only `zoneId` if it is among them. */
export async function listKnownZones(db: Queryable, zoneId?: number): Promise<KnownZone[]> {
  // One step per zone through the index, instead of every hour of every zone.
  const next = (after: SQL) => sql`(select min(${w.zoneId}) from ${coverageWindows} ${w} ${after})`;
  const { rows } = await db.execute<{ [Key in keyof KnownZone]: number }>(sql`
    with recursive z as (
      select ${next(sql``)} as id union all select ${next(sql`where ${w.zoneId} > z.id`)} from z where id is not null)
    select id as "zoneId", ${epochMs(sql`(select min(${w.startsAt}) from ${coverageWindows} ${w} where ${w.zoneId} = id)`)}
      as "firstHour" from z where ${zoneId === undefined ? sql`id is not null` : sql`id = ${zoneId}`} order by id`);
  return rows;
}

interface CoverageDay {
  readonly zoneId: number;
  readonly day: string;
  readonly sealed: number;
  readonly open: number;
  readonly gap: number;
  /** Gaps that nobody could have prevented. They are not in `gap`. */
  readonly unwatched: number;
  /** Hours with imported events. They are neither gaps nor unwatched. */
  readonly imported: number;
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
      unwatched: hours(sql`${state} = 'gap' and ${isUnwatched} and ${gapReason} <> ${IMPORTED}`),
      imported: hours(sql`${gapReason} = ${IMPORTED}`),
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

const h = alias(platformHealth, "h");

/** An ended hour that is neither sealed nor a gap. */
export interface UndecidedHour {
  /** Epoch ms. */
  readonly startsAt: number;
  /** Time until the platform begins to forget the hour, in ms; negative once it has begun to. */
  readonly leftMs: number;
}

interface UndecidedZone {
  readonly zoneId: number;
  /** Without the first two hours of the zone, which the platform had begun to forget when the zone was first watched. */
  readonly oldest: UndecidedHour | null;
  /** How long the platform keeps the events of the zone, in ms. */
  readonly keptMs: number;
  /** When the oldest of the decided hours was decided, epoch ms; null before the first decision. */
  readonly firstSealAt: number | null;
}

/** Returns what is undecided of each of these zones that has a known hour, by id. An hour without a row is undecided. */
export async function readUndecided(
  db: Queryable,
  zoneIds: readonly number[],
  nowMs: number,
): Promise<UndecidedZone[]> {
  const ended = sql`${new Date(nowMs - HOUR_MS)}::timestamptz`;
  // Hours without a row are from an outage. seal-windows enters them as soon as the service runs.
  const recent = sql`${new Date(startOfHour(horizonAt(nowMs)))}::timestamptz`;
  const own = sql`${coverageWindows} ${w} where ${w.zoneId} = z.id`;
  type Read = Omit<UndecidedZone, "oldest" | "keptMs"> &
    Omit<KnownHorizon, "beforeMs"> & { startsAt: number | null };
  const { rows } = await db.execute<{ [Key in keyof Read]: Read[Key] }>(sql`
    select z.id as "zoneId", ${h.keptMs} as "keptMs", ${epochMs(h.keptSince)} as since,
      ${epochMs(sql`(select ${w.sealedAt} from ${own} and ${w.sealedAt} is not null order by ${w.startsAt} limit 1)`)}
        as "firstSealAt",
      ${epochMs(sql`least(
        (select min(${w.startsAt}) from ${own} and ${w.state} = 'open' and ${w.startsAt} between f.begin and ${ended}),
        (select min(hour) from generate_series(greatest(f.begin, ${recent}), ${ended}, interval '1 hour') as hour
          where not exists (select from ${own} and ${w.startsAt} >= ${recent} and ${w.startsAt} = hour)))`)} as "startsAt"
    from unnest(${sql.param([...zoneIds])}::integer[]) as z(id)
    join lateral (select min(${w.startsAt}) + interval '2 hours' as begin from ${own} and ${isWatched(w.gapReason)}) f on f.begin is not null
    left join ${platformHealth} ${h} on ${h.zoneId} = z.id order by z.id`);
  return rows.map(({ zoneId, firstSealAt, startsAt, ...horizon }) => {
    const keptMs = keptFor(horizon, nowMs);
    const oldest = startsAt === null ? null : { startsAt, leftMs: startsAt - horizonAt(nowMs, keptMs) };
    return { zoneId, firstSealAt, keptMs, oldest };
  });
}

/** Hours of one zone that became gaps together. Times in epoch ms. */
export interface GapBatch {
  readonly zoneId: number;
  readonly decidedAt: number;
  readonly hours: number;
  /** Start of the first hour and end of the last. */
  readonly from: number;
  readonly to: number;
}

/** Returns the gaps of these zones, in the order in which they became gaps, without those of `exceptReasons`. */
export function readGapBatches(
  db: Queryable,
  zoneIds: readonly number[],
  { sinceMs, exceptReasons }: { readonly sinceMs: number; readonly exceptReasons: readonly string[] },
): Promise<GapBatch[]> {
  const since = new Date(sinceMs);
  return db
    .select({
      zoneId: w.zoneId,
      decidedAt: epochMs(sql`${w.sealedAt}`),
      hours: sql<number>`count(*)::integer`,
      from: epochMs(sql`min(${w.startsAt})`),
      to: epochMs(sql`max(${w.startsAt}) + interval '1 hour'`),
    })
    .from(w)
    .where(
      sql`${w.zoneId} = any(${sql.param([...zoneIds])}::integer[]) and ${w.startsAt} >= ${since} and ${w.state} = 'gap'
        and ${w.sealedAt} > ${since} and ${w.gapReason} <> all(${sql.param([...exceptReasons])}::text[])`,
    )
    .groupBy(w.zoneId, w.sealedAt)
    .orderBy(w.sealedAt);
}
