import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

/** The days, events and bytes of a zone in the archive. Days are `yyyy-mm-dd`. */
export interface ZoneArchive {
  readonly zoneId: number;
  readonly days: number;
  readonly firstDay: string;
  readonly lastDay: string;
  readonly events: number;
  readonly eventBytes: number;
  readonly recordBytes: number;
  /** When the file that was checked longest ago was compared with its hash; epoch ms. */
  readonly checkedAt: number;
}

export async function readZoneArchives(db: Queryable): Promise<ZoneArchive[]> {
  const { rows } = await db.execute<ZoneArchive & Record<string, unknown>>(sql`
    select zone_id as "zoneId", (count(*) filter (where kind = 'events'))::integer as days, min(day)::text as "firstDay",
      max(day)::text as "lastDay", coalesce(sum(rows) filter (where kind = 'events'), 0)::float8 as events,
      coalesce(sum(bytes) filter (where kind = 'events'), 0)::float8 as "eventBytes",
      coalesce(sum(bytes) filter (where kind = 'records'), 0)::float8 as "recordBytes",
      (extract(epoch from min(checked_at)) * 1000)::float8 as "checkedAt"
    from archive_files where retired_at is null group by zone_id order by zone_id`);
  return rows;
}
