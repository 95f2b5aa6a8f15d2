import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { notifications } from "../schema/notifications.ts";
import { spikes } from "../schema/spikes.ts";

const s = alias(spikes, "s");
const member = alias(spikes, "member");
const n = alias(notifications, "n");
const owner = alias(alerts, "owner");
const a = alias(alerts, "a");

export interface OpenWork {
  /** Null: the work that belongs to no single zone. */
  readonly zoneId: number | null;
  readonly spikesOpen: number;
  /** Without the alerts of rules that are part of the alert of another spike, which notifies for them. */
  readonly alertsFiring: number;
  readonly alertsAcknowledged: number;
  readonly notificationsPending: number;
}

/** Returns the open work of each of these zones, in their order. */
export async function readOpenWork(db: Queryable, zoneIds: readonly (number | null)[]): Promise<OpenWork[]> {
  const { rows } = await db.execute<{ [Key in keyof OpenWork]: OpenWork[Key] }>(sql`
    select z.zone_id as "zoneId",
      (select count(*) from ${spikes} ${s}
        where ${s.zoneId} = z.zone_id and ${s.closedAt} is null)::integer as "spikesOpen",
      count(${a.id}) filter (where ${a.state} = 'firing')::integer as "alertsFiring",
      count(${a.id}) filter (where ${a.state} = 'acknowledged')::integer as "alertsAcknowledged",
      (select count(*) from ${notifications} ${n} join ${alerts} ${owner} on ${owner.id} = ${n.alertId}
        where ${owner.zoneId} is not distinct from z.zone_id
          and ${n.state} in ('pending', 'sending'))::integer as "notificationsPending"
    from unnest(${sql.param([...zoneIds])}::integer[]) with ordinality as z(zone_id, place)
    left join ${alerts} ${a} on ${a.zoneId} is not distinct from z.zone_id and ${a.state} <> 'resolved'
      and not exists (select from ${spikes} ${member} where ${member.id} = ${a.spikeId} and ${member.memberOf} is not null)
    group by z.zone_id, z.place order by z.place`);
  return rows;
}
