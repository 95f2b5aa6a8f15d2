import { and, eq, gt, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { toMoment } from "../search/search-condition.ts";

const w = alias(coverageWindows, "w");

/** Returns whether an event of the zone was ever stored, even if the zone is no longer copied. */
export async function hasStoredEvents(db: Queryable, zoneId: number): Promise<boolean> {
  const found = await db
    .select({ storedCount: w.storedCount })
    .from(w)
    .where(and(eq(w.zoneId, zoneId), gt(w.storedCount, 0)))
    .limit(1);
  return found.length > 0;
}

/**
 * Returns about how many events of a zone lie in [from, to), epoch ms. An hour that lies partly inside counts by its
 * share of the time.
 */
export async function countStoredEvents(
  db: Queryable,
  zoneId: number,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<number> {
  const found = await db.execute<{ events: number }>(sql`
    select coalesce(sum(${w.storedCount} * extract(epoch from
      least(${w.startsAt} + interval '1 hour', ${toMoment(to)})
        - greatest(${w.startsAt}, ${toMoment(from)})) / 3600), 0)::float8 as events
    from ${coverageWindows} ${w}
    where ${w.zoneId} = ${zoneId} and ${w.startsAt} > ${toMoment(from)} - interval '1 hour'
      and ${w.startsAt} < ${toMoment(to)}`);
  return found.rows[0]?.events ?? 0;
}
