import { and, eq, getTableColumns, gte, lt, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { CoverageHour } from "#model/covered-hour.ts";
import type { Queryable } from "../client.ts";
import { judged } from "../detection/judged-hours.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { judgedHours } from "../schema/judged-hours.ts";

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
