import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

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
  const isAsked = sql`zone_id = any(${sql.param([...query.zoneIds])}::integer[]) and starts_at >= ${since}`;
  const isOpen = sql`state = 'open' and starts_at < ${new Date(openBeforeMs)}`;
  const zones = await db.execute<{ zone: number; watched: number | null; open: number | null }>(sql`
    select zone_id as zone, ${toMs(sql`min(sealed_at)`)} as watched,
      ${toMs(sql`min(starts_at) filter (where ${isOpen} and starts_at >= first_at + interval '2 hours')`)} as open
    from coverage_windows
    join (select zone_id, min(starts_at) as first_at from coverage_windows group by zone_id) f using (zone_id)
    where ${isAsked} group by zone_id order by zone_id`);
  const gaps = await db.execute<{
    zone: number;
    decided: number;
    hours: number;
    first: number;
    last: number;
  }>(sql`
    select zone_id as zone, ${toMs(sql`sealed_at`)} as decided, count(*)::integer as hours,
      ${toMs(sql`min(starts_at)`)} as first, ${toMs(sql`max(starts_at) + interval '1 hour'`)} as last
    from coverage_windows
    where ${isAsked} and state = 'gap' and sealed_at > ${since} and gap_reason <> all(${sql.param([...exceptReasons])}::text[])
    group by zone_id, sealed_at order by sealed_at`);
  const byZone = Map.groupBy(gaps.rows, ({ zone }) => zone);
  return zones.rows.map(({ zone, watched, open }) => ({
    zoneId: zone,
    oldestOpenAt: open,
    watchedSince: watched,
    gaps: (byZone.get(zone) ?? []).map(({ decided, hours, first, last }) => ({
      decidedAt: decided,
      hours,
      from: first,
      to: last,
    })),
  }));
}

/** Returns epoch ms: raw SQL returns times as text. */
function toMs(time: ReturnType<typeof sql>) {
  return sql`(extract(epoch from ${time}) * 1000)::float8`;
}
