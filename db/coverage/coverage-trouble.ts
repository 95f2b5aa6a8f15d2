import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";

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
  readonly watchedSince: number | null;
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

export interface TroubleQuery {
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
    select ${w.zoneId} as "zoneId", ${epochMs(sql`min(${w.sealedAt})`)} as "watchedSince",
      ${epochMs(sql`min(${w.startsAt}) filter (where ${isOpen} and ${w.startsAt} >= first_at + interval '2 hours')`)}
        as "oldestOpenAt"
    from ${coverageWindows} ${w}
    join (select ${w.zoneId}, min(${w.startsAt}) as first_at from ${coverageWindows} ${w} group by 1) f
      using (${names(w.zoneId)})
    where ${isAsked} group by ${w.zoneId} order by ${w.zoneId}`);
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
