import { sql } from "drizzle-orm";
import type { UNRESOLVED_STATES } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";

interface OpenAlerts {
  readonly state: (typeof UNRESOLVED_STATES)[number];
  readonly kind: string;
  readonly count: number;
}

/** Returns how many alerts are not resolved, by state and kind. */
export async function countOpenAlerts(db: Queryable): Promise<readonly OpenAlerts[]> {
  const { rows } = await db.execute<{ [Key in keyof OpenAlerts]: OpenAlerts[Key] }>(sql`
    select state, kind, count(*)::integer as count from alerts
    where state <> 'resolved' group by state, kind order by state, kind`);
  return rows;
}

/**
 * Returns by zone how many hours from `fromMs` on are gaps. An hour with one of the reasons in `unwatched` does not
 * count.
 */
export async function countGapHours(
  db: Queryable,
  { fromMs, unwatched }: { readonly fromMs: number; readonly unwatched: readonly string[] },
): Promise<ReadonlyMap<number, number>> {
  const { rows } = await db.execute<{ zone: number; hours: number }>(sql`
    select zone_id as zone, count(*)::integer as hours from coverage_windows
    where state = 'gap' and starts_at >= ${new Date(fromMs)} and gap_reason <> all(${sql.param([...unwatched])}::text[])
    group by zone_id`);
  return new Map(rows.map(({ zone, hours }) => [zone, hours]));
}
