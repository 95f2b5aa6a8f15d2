import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

interface ZoneStatus {
  readonly zoneId: number;
  /** Number of stored events in the requested hours. */
  readonly events: number;
  /** Epoch ms; null before the first event. */
  readonly newestAt: number | null;
  /** End of the span that the search route has covered, in the hour that is farthest; epoch ms. */
  readonly searchedThrough: number | null;
  readonly quarantined: number;
}

export interface ServiceStatus {
  readonly zones: readonly ZoneStatus[];
  readonly spikesOpen: number;
  readonly alertsFiring: number;
  readonly notificationsPending: number;
}

/** Returns what is stored of the hours from `fromMs` on, and the unfinished work. */
export async function readServiceStatus(
  db: Queryable,
  zoneIds: readonly number[],
  fromMs: number,
): Promise<ServiceStatus> {
  const from = new Date(fromMs);
  const zones = await db.execute<{ [Key in keyof ZoneStatus]: ZoneStatus[Key] }>(sql`
    select zone_id as "zoneId",
      coalesce((select sum(stored_count) from coverage_windows w
        where w.zone_id = z.zone_id and starts_at >= ${from}), 0)::float8 as events,
      (select extract(epoch from max(occurred_at)) * 1000 from waf_events e
        where e.zone_id = z.zone_id and occurred_at >= ${from})::float8 as "newestAt",
      (select extract(epoch from max(searched_through)) * 1000 from coverage_windows w
        where w.zone_id = z.zone_id)::float8 as "searchedThrough",
      (select count(*) from quarantined_entries q where q.zone_id = z.zone_id)::float8 as quarantined
    from unnest(${sql.param([...zoneIds])}::integer[]) as z(zone_id) order by 1`);
  const work = await db.execute<{ spikes: number; alerts: number; notifications: number }>(sql`
    select (select count(*) from spikes where closed_at is null)::integer as spikes,
      (select count(*) from alerts where state <> 'resolved')::integer as alerts,
      (select count(*) from notifications where state in ('pending', 'sending'))::integer as notifications`);
  const [counts] = work.rows;
  return {
    zones: zones.rows,
    spikesOpen: counts?.spikes ?? 0,
    alertsFiring: counts?.alerts ?? 0,
    notificationsPending: counts?.notifications ?? 0,
  };
}

/** Returns how many events of these zones are stored in the hours from `fromMs` on. */
export async function readStoredEvents(
  db: Queryable,
  zoneIds: readonly number[],
  fromMs: number,
): Promise<number> {
  const { rows } = await db.execute<{ events: number }>(sql`
    select coalesce(sum(stored_count), 0)::float8 as events from coverage_windows
    where zone_id = any(${sql.param([...zoneIds])}::integer[]) and starts_at >= ${new Date(fromMs)}`);
  return rows[0]?.events ?? 0;
}
