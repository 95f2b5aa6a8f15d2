import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { toMoment } from "../search/search-condition.ts";

/** Returns whether an event of the zone was ever stored, even if the zone is no longer copied. */
export async function hasStoredEvents(db: Queryable, zoneId: number): Promise<boolean> {
  const found = await db.execute(
    sql`select 1 from coverage_windows where zone_id = ${zoneId} and stored_count > 0 limit 1`,
  );
  return found.rows.length > 0;
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
    select coalesce(sum(stored_count * extract(epoch from
      least(starts_at + interval '1 hour', ${toMoment(to)}) - greatest(starts_at, ${toMoment(from)})) / 3600), 0)::float8
      as events
    from coverage_windows
    where zone_id = ${zoneId} and starts_at > ${toMoment(from)} - interval '1 hour' and starts_at < ${toMoment(to)}`);
  return found.rows[0]?.events ?? 0;
}
