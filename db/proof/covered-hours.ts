/** The state of each hour: its looks, its proof and its seal. */
import {
  and,
  asc,
  eq,
  getTableColumns,
  gte,
  inArray,
  lt,
  or,
  type SQL,
  type SQLWrapper,
  sql,
} from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import {
  BEFORE_WATCH,
  type CoveredHour,
  type HourLooks,
  IMPORTED,
  NOT_WATCHED,
} from "#model/covered-hour.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { HISTORY } from "./reopen-hours.ts";

const w = alias(coverageWindows, "w");

/** No caller needs the evidence of the seals, which is the longest column. */
const { evidence: _, ...COLUMNS } = getTableColumns(coverageWindows);

/** Returns the recorded hours that begin in [fromMs, toMs), oldest first. An hour without a row has not begun. */
export async function readCoveredHours(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<CoveredHour[]> {
  const rows = await db
    .select(COLUMNS)
    .from(coverageWindows)
    .where(and(eq(coverageWindows.zoneId, zoneId), beginsIn(fromMs, toMs)))
    .orderBy(asc(coverageWindows.startsAt));
  return rows.map(toCoveredHour);
}

/** Returns these hours (epoch ms of their starts) as they are recorded, oldest first, locked until the commit. */
export async function lockHours(
  tx: Queryable,
  zoneId: number,
  hours: readonly number[],
): Promise<CoveredHour[]> {
  const starts = hours.map((hour) => new Date(hour));
  const rows = await tx
    .select(COLUMNS)
    .from(coverageWindows)
    .where(and(eq(coverageWindows.zoneId, zoneId), inArray(coverageWindows.startsAt, starts)))
    .orderBy(asc(coverageWindows.startsAt))
    .for("update");
  return rows.map(toCoveredHour);
}

/**
 * Returns the undecided hours that begin before `toMs`, oldest first. They are locked, so no event is stored into
 * them until the commit.
 */
export async function lockOpenHours(tx: Queryable, zoneId: number, toMs: number): Promise<CoveredHour[]> {
  const rows = await tx
    .select(COLUMNS)
    .from(coverageWindows)
    .where(
      and(
        eq(coverageWindows.zoneId, zoneId),
        eq(coverageWindows.state, "open"),
        lt(coverageWindows.startsAt, new Date(toMs)),
      ),
    )
    .orderBy(asc(coverageWindows.startsAt))
    .for("update");
  return rows.map(toCoveredHour);
}

/** Returns the zones that have an undecided hour before `toMs`. */
export async function listOpenZones(db: Queryable, toMs: number): Promise<number[]> {
  const rows = await db
    .selectDistinct({ zoneId: coverageWindows.zoneId })
    .from(coverageWindows)
    .where(and(eq(coverageWindows.state, "open"), lt(coverageWindows.startsAt, new Date(toMs))));
  return rows.map(({ zoneId }) => zoneId);
}

/**
 * Inserts a row for every missing hour between the zone's first known hour and `toMs`, so that a long outage leaves
 * no hour without a row. While no hour of the zone is decided, the first hour is at or before `fromMs`. Missing hours between
 * imported ones and the first are entered as not watched. Returns the zone's first known hour, epoch ms.
 */
export async function enterHours(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<number> {
  const [row] = await db
    .select({
      first: epochMs(sql`least(min(${w.startsAt}),
        case when bool_or(${w.state} <> 'open') then null else ${new Date(fromMs)}::timestamptz end)`),
    })
    .from(w)
    .where(and(eq(w.zoneId, zoneId), isWatched(w.gapReason)));
  const first = row?.first ?? fromMs;
  const begin = new Date(first);
  const own = sql`${coverageWindows} ${w} where ${w.zoneId} = ${zoneId}`;
  await db.execute(sql`
    insert into ${coverageWindows} (${names(w.zoneId, w.startsAt, w.state, w.gapReason)})
    select ${zoneId}, hour, case when hour < ${begin} then 'gap' else 'open' end,
      case when hour < ${begin} then ${NOT_WATCHED} end
    from generate_series(least(${begin}::timestamptz, (select min(${w.startsAt}) from ${own})),
      ${new Date(toMs - 1)}::timestamptz, interval '1 hour') as hour
    where not exists (select from ${own} and ${w.startsAt} = hour)
    order by hour
    on conflict (${names(w.zoneId, w.startsAt)}) do nothing`);
  return first;
}

/** Returns whether an hour is not one that an import has entered. */
export function isWatched(gapReason: SQLWrapper): SQL {
  return sql`(${gapReason} is null or ${gapReason} <> all(${sql.param([...BEFORE_WATCH])}::text[]))`;
}

/** Returns the start of the first hour that the zone was watched in, epoch ms; null if there is none. */
export async function readWatchedFrom(db: Queryable, zoneId: number): Promise<number | null> {
  const [row] = await db
    .select({ first: epochMs(sql<string | null>`min(${w.startsAt})`) })
    .from(w)
    .where(and(eq(w.zoneId, zoneId), isWatched(w.gapReason)));
  return row?.first ?? null;
}

/**
 * Decides the hours before `beforeMs` (epoch ms) that have got imported events: they are no loss, and not proven. Enters the
 * hours between them and `beforeMs`, so that no hour lacks a row.
 */
export async function enterImported(
  tx: Queryable,
  zoneId: number,
  {
    hours,
    beforeMs,
    atMs,
  }: { readonly hours: readonly number[]; readonly beforeMs: number; readonly atMs: number },
): Promise<void> {
  const before = new Date(beforeMs);
  const evidence = { imported: { at: new Date(atMs).toISOString() } };
  await tx
    .update(coverageWindows)
    .set({ state: "gap", gapReason: IMPORTED, unresolvedSince: null, evidence })
    .where(
      and(
        eq(coverageWindows.zoneId, zoneId),
        inArray(
          coverageWindows.startsAt,
          hours.map((hour) => new Date(hour)),
        ),
        lt(coverageWindows.startsAt, before),
        or(eq(coverageWindows.state, "open"), eq(coverageWindows.gapReason, NOT_WATCHED)),
      ),
    );
  await enterHours(tx, zoneId, { fromMs: beforeMs, toMs: beforeMs });
}

/** Voids the looks of these undecided hours (epoch ms of their starts) that began before `atMs`. */
export async function proveAnew(
  tx: Queryable,
  zoneId: number,
  hours: readonly number[],
  atMs: number,
): Promise<void> {
  const starts = hours.map((hour) => new Date(hour));
  await tx
    .update(coverageWindows)
    .set({ proofFrom: sql`greatest(${coverageWindows.proofFrom}, ${new Date(atMs)}::timestamptz)` })
    .where(
      and(
        eq(coverageWindows.zoneId, zoneId),
        eq(coverageWindows.state, "open"),
        inArray(coverageWindows.startsAt, starts),
      ),
    );
}

function beginsIn(fromMs: number, toMs: number) {
  return and(gte(coverageWindows.startsAt, new Date(fromMs)), lt(coverageWindows.startsAt, new Date(toMs)));
}

function toCoveredHour(row: Omit<typeof coverageWindows.$inferSelect, "evidence">): CoveredHour {
  const { startsAt, state, upstreamCount, storedCount, missingCells, surplusCells, reopenReason, looks } =
    row;
  const at = (time: Date | null) => time?.getTime() ?? null;
  return {
    startsAt: startsAt.getTime(),
    state,
    searchedThrough: at(row.searchedThrough),
    lastNewAt: at(row.lastNewAt),
    closingSearchAt: at(row.closingSearchAt),
    reconciledAt: at(row.reconciledAt),
    upstreamCount,
    storedCount,
    missingCells,
    surplusCells,
    reopenedAt: at(row.reopenedAt),
    reopenReason,
    proofFrom: at(row.proofFrom),
    unresolvedSince: at(row.unresolvedSince),
    looks,
  };
}

/** The decision about an hour. */
export interface HourVerdict {
  /** Epoch ms. */
  readonly startsAt: number;
  readonly state: "sealed" | "gap";
  /** The reason of a gap. */
  readonly reason: string | null;
  readonly evidence: unknown;
}

/**
 * Decides undecided hours. A sealed hour and a gap keep their state. Returns the number of hours that this call
 * decided.
 */
export async function decideHours(
  tx: Queryable,
  zoneId: number,
  verdicts: readonly HourVerdict[],
  decidedAtMs: number,
): Promise<number> {
  if (verdicts.length === 0) return 0;
  const given = verdicts.map(({ startsAt, ...verdict }) => ({ ...verdict, starts_at: new Date(startsAt) }));
  const decided = await tx
    .update(coverageWindows)
    .set({
      state: sql`v.state`,
      sealedAt: new Date(decidedAtMs),
      gapReason: sql`v.reason`,
      proofFrom: null,
      evidence: sql`v.evidence
        || case when ${HISTORY} = '[]' then '{}' else jsonb_build_object('history', ${HISTORY}) end`,
    })
    .from(sql`jsonb_to_recordset(${JSON.stringify(given)}::jsonb)
      as v(starts_at timestamptz, state text, reason text, evidence jsonb)`)
    .where(
      and(
        eq(coverageWindows.zoneId, zoneId),
        eq(coverageWindows.startsAt, sql`v.starts_at`),
        eq(coverageWindows.state, "open"),
      ),
    );
  return decided.rowCount ?? 0;
}

/**
 * Adds to the evidence of sealed hours (epoch ms of their starts) that the last comparison at `atMs` found them
 * complete.
 */
export async function recordLastProof(
  tx: Queryable,
  zoneId: number,
  hours: readonly number[],
  atMs: number,
): Promise<void> {
  const starts = hours.map((hour) => new Date(hour));
  const { zoneId: zone, startsAt, state, evidence } = coverageWindows;
  const proof = sql`jsonb_build_object('lastProofAt', ${new Date(atMs).toISOString()}::text)`;
  await tx
    .update(coverageWindows)
    .set({ evidence: sql`${evidence} || ${proof}` })
    .where(sql`${zone} = ${zoneId} and ${startsAt} = any(${sql.param(starts)}::timestamptz[])
      and ${state} = 'sealed' and not ${evidence} ? 'lastProofAt'`);
}

const KEY = names(coverageWindows.zoneId, coverageWindows.startsAt);

/**
 * Returns the looks of these hours (epoch ms of their starts), locked until the commit. Inserts a row for an hour
 * without one.
 */
export async function lockLooks(
  tx: Queryable,
  zoneId: number,
  hours: readonly number[],
): Promise<Map<number, HourLooks>> {
  if (hours.length === 0) return new Map();
  const starts = hours.map((hour) => new Date(hour));
  await tx.execute(sql`
    insert into ${coverageWindows} (${KEY})
    select ${zoneId}, hour from unnest(${sql.param(starts)}::timestamptz[]) as hour order by hour
    on conflict (${KEY}) do nothing`);
  const rows = await tx
    .select({ startsAt: coverageWindows.startsAt, looks: coverageWindows.looks })
    .from(coverageWindows)
    .where(and(eq(coverageWindows.zoneId, zoneId), inArray(coverageWindows.startsAt, starts)))
    .orderBy(asc(coverageWindows.startsAt))
    .for("update");
  return new Map(rows.map(({ startsAt, looks }) => [startsAt.getTime(), looks]));
}

/** Stores the looks of hours whose rows are locked. */
export async function writeLooks(
  tx: Queryable,
  zoneId: number,
  looks: ReadonlyMap<number, HourLooks>,
): Promise<void> {
  if (looks.size === 0) return;
  const given = [...looks].map(([startsAt, value]) => ({ starts_at: new Date(startsAt), looks: value }));
  const { zoneId: zone, startsAt: start, looks: stored } = coverageWindows;
  await tx
    .update(coverageWindows)
    .set({ looks: sql`g.looks` })
    .from(sql`jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g(starts_at timestamptz, looks jsonb)`)
    .where(sql`${zone} = ${zoneId} and ${start} = g.starts_at and ${stored} <> g.looks`);
}
