import { and, asc, eq, getTableColumns, gte, inArray, lt, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { CoveredHour } from "#model/covered-hour.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";

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
 * no hour without a row. While no hour of the zone is decided, the first hour is at or before `fromMs`. Returns the
 * zone's first known hour, epoch ms.
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
    .where(eq(w.zoneId, zoneId));
  const first = row?.first ?? fromMs;
  await db.execute(sql`
    insert into ${coverageWindows} (${names(w.zoneId, w.startsAt)})
    select ${zoneId}, hour from generate_series(
      ${new Date(first)}::timestamptz, ${new Date(toMs - 1)}::timestamptz, interval '1 hour') as hour
    where not exists (select from ${coverageWindows} ${w} where ${w.zoneId} = ${zoneId} and ${w.startsAt} = hour)
    order by hour
    on conflict (${names(w.zoneId, w.startsAt)}) do nothing`);
  return first;
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
