import { count, ne, sql } from "drizzle-orm";
import type { UNRESOLVED_STATES } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";

interface OpenAlerts {
  readonly state: (typeof UNRESOLVED_STATES)[number];
  readonly kind: string;
  readonly count: number;
}

/** Returns how many alerts are not resolved, by state and kind. */
export function countOpenAlerts(db: Queryable): Promise<readonly OpenAlerts[]> {
  const { state, kind } = alerts;
  return db
    .select({ state: sql<OpenAlerts["state"]>`${state}`, kind, count: count() })
    .from(alerts)
    .where(ne(state, "resolved"))
    .groupBy(state, kind)
    .orderBy(state, kind);
}

/**
 * Returns by zone how many hours from `fromMs` on are gaps. An hour with one of the reasons in `unwatched` does not
 * count.
 */
export async function countGapHours(
  db: Queryable,
  { fromMs, unwatched }: { readonly fromMs: number; readonly unwatched: readonly string[] },
): Promise<ReadonlyMap<number, number>> {
  const { zoneId, startsAt, state, gapReason } = coverageWindows;
  const rows = await db
    .select({ zoneId, hours: count() })
    .from(coverageWindows)
    .where(
      sql`${state} = 'gap' and ${startsAt} >= ${new Date(fromMs)}
        and ${gapReason} <> all(${sql.param([...unwatched])}::text[])`,
    )
    .groupBy(zoneId);
  return new Map(rows.map(({ zoneId: zone, hours }) => [zone, hours]));
}
