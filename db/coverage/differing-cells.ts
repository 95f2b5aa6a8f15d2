import { and, eq, gte, isNull, lt, lte, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { differingCells } from "../schema/differing-cells.ts";

/** A cell of an undecided hour for which fewer events are stored than the platform counts. */
export interface MissingCell {
  /** Epoch ms. */
  readonly startsAt: number;
  readonly ruleId: string;
  readonly repairs: number;
}

interface DueAt {
  readonly nowMs: number;
  /** The platform no longer serves hours that begin before this. */
  readonly horizonMs: number;
}

/**
 * Returns the cells that may be repaired now and that the platform still serves. The hour that expires first comes
 * first.
 */
export async function readDueCells(db: Queryable, zoneId: number, due: DueAt): Promise<MissingCell[]> {
  const { startsAt, ruleId, repairs } = differingCells;
  const rows = await db
    .select({ startsAt, ruleId, repairs })
    .from(differingCells)
    .innerJoin(coverageWindows, isItsHour())
    .where(and(eq(differingCells.zoneId, zoneId), isDue(due)))
    .orderBy(startsAt, ruleId);
  return rows.map((row) => ({ ...row, startsAt: row.startsAt.getTime() }));
}

/** Returns the zones that have a cell to repair now. */
export async function listRepairableZones(db: Queryable, due: DueAt): Promise<number[]> {
  const rows = await db
    .selectDistinct({ zoneId: differingCells.zoneId })
    .from(differingCells)
    .innerJoin(coverageWindows, isItsHour())
    .where(isDue(due));
  return rows.map(({ zoneId }) => zoneId);
}

/**
 * Counts a repair of an hour's due cells and postpones the next one, twice as long every time. The postponement is
 * stored before the request is sent, so the platform is not asked again at once whatever the outcome is.
 */
export async function claimRepair(
  db: Queryable,
  zoneId: number,
  repair: { startsAt: number; nowMs: number; firstMs: number; longestMs: number },
): Promise<void> {
  const { startsAt, nowMs, firstMs, longestMs } = repair;
  const waitMs = sql`least(${longestMs}::float8, ${firstMs}::float8 * power(2, least(repairs, 30)))`;
  const now = new Date(nowMs);
  await db
    .update(differingCells)
    .set({
      repairs: sql`${differingCells.repairs} + 1`,
      nextRepairAt: sql`${now}::timestamptz + ${waitMs} * interval '1 millisecond'`,
    })
    .where(
      and(
        eq(differingCells.zoneId, zoneId),
        eq(differingCells.startsAt, new Date(startsAt)),
        isMissing(),
        lte(differingCells.nextRepairAt, now),
      ),
    );
}

function isItsHour() {
  return and(
    eq(coverageWindows.zoneId, differingCells.zoneId),
    eq(coverageWindows.startsAt, differingCells.startsAt),
  );
}

function isDue({ nowMs, horizonMs }: DueAt) {
  return and(
    isMissing(),
    lte(differingCells.nextRepairAt, new Date(nowMs)),
    gte(differingCells.startsAt, new Date(horizonMs)),
    eq(coverageWindows.state, "open"),
  );
}

function isMissing() {
  return and(isNull(differingCells.resolvedAt), lt(differingCells.storedCount, differingCells.upstreamCount));
}
