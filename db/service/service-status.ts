import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { alerts } from "../schema/alerts.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { notifications } from "../schema/notifications.ts";
import { quarantinedEntries } from "../schema/quarantined-entries.ts";
import { spikes } from "../schema/spikes.ts";
import { wafEvents } from "../schema/waf-events.ts";

const s = alias(spikes, "s");
const a = alias(alerts, "a");
const w = alias(coverageWindows, "w");
const n = alias(notifications, "n");
const e = alias(wafEvents, "e");
const q = alias(quarantinedEntries, "q");

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
      coalesce((select sum(${w.storedCount}) from ${coverageWindows} ${w}
        where ${w.zoneId} = z.zone_id and ${w.startsAt} >= ${from}), 0)::float8 as events,
      (select ${epochMs(sql`max(${e.occurredAt})`)} from ${wafEvents} ${e}
        where ${e.zoneId} = z.zone_id and ${e.occurredAt} >= ${from}) as "newestAt",
      (select ${epochMs(sql`max(${w.searchedThrough})`)} from ${coverageWindows} ${w}
        where ${w.zoneId} = z.zone_id) as "searchedThrough",
      (select count(*) from ${quarantinedEntries} ${q} where ${q.zoneId} = z.zone_id)::float8 as quarantined
    from unnest(${sql.param([...zoneIds])}::integer[]) as z(zone_id) order by 1`);
  const work = await db.execute<{ spikes: number; alerts: number; notifications: number }>(sql`
    select (select count(*) from ${spikes} ${s} where ${s.closedAt} is null)::integer as spikes,
      (select count(*) from ${alerts} ${a} where ${a.state} <> 'resolved')::integer as alerts,
      (select count(*) from ${notifications} ${n} where ${n.state} in ('pending', 'sending'))::integer as notifications`);
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
  const [row] = await db
    .select({ events: sql<number>`coalesce(sum(${w.storedCount}), 0)::float8` })
    .from(w)
    .where(
      sql`${w.zoneId} = any(${sql.param([...zoneIds])}::integer[]) and ${w.startsAt} >= ${new Date(fromMs)}`,
    );
  return row?.events ?? 0;
}
