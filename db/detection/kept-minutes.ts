import { sql } from "drizzle-orm";
import { toDay } from "#model/horizon.ts";
import type { Queryable } from "../client.ts";

/**
 * Returns the start of the first day of a zone (epoch ms) from which on all minutes are kept; null if all are. Minutes
 * of old archive days, those before `keptFrom` (epoch ms), are deleted; hours and days are not.
 */
export async function readMinutesFrom(
  db: Queryable,
  zoneId: number,
  keptFrom: number,
): Promise<number | null> {
  const { rows } = await db.execute<{ at: number | null }>(sql`
    select (extract(epoch from (max(day) + 1)::timestamp at time zone 'UTC') * 1000)::float8 as at from archive_files
    where zone_id = ${zoneId} and day < ${toDay(keptFrom)}::date and kind = 'events' and retired_at is null`);
  return rows[0]?.at ?? null;
}
