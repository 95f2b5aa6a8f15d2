import { and, gte, lt, type SQL, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";

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
