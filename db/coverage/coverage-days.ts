import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

export interface CoverageDay {
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
  const ofZones = zoneIds === null ? sql`` : sql`and zone_id = any(${sql.param([...zoneIds])}::integer[])`;
  const isUnwatched = sql`(gap_reason is not null and gap_reason = any(${sql.param([...unwatched])}::text[]))`;
  const { rows } = await db.execute<{ [Key in keyof CoverageDay]: CoverageDay[Key] }>(sql`
    select zone_id as "zoneId", ((starts_at at time zone 'UTC')::date)::text as day,
      count(*) filter (where state = 'sealed')::integer as sealed,
      count(*) filter (where state = 'open')::integer as open,
      count(*) filter (where state = 'gap' and not ${isUnwatched})::integer as gap,
      count(*) filter (where state = 'gap' and ${isUnwatched})::integer as unwatched,
      coalesce(sum(stored_count), 0)::float8 as stored
    from coverage_windows
    where starts_at >= ${new Date(fromMs)} and starts_at < ${new Date(toMs)} ${ofZones}
    group by 1, 2 order by 1, 2`);
  return rows;
}
