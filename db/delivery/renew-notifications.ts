import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { alerts } from "../schema/alerts.ts";
import { notifications } from "../schema/notifications.ts";
import { isDead } from "../service/last-errors.ts";
import { later } from "./notifications.ts";

const n = alias(notifications, "n");
const a = alias(alerts, "a");
const l = alias(notifications, "l");

/**
 * Makes the newest message of every unresolved alert due again on a channel whose receiver ends alerts by itself, if
 * the message was accepted longer than `afterMs` ago. An acknowledgement or a silence does not matter: the receiver
 * recognises the alert by its key. `deliveredAt` stays. Returns the number of rows.
 */
export async function renewNotifications(
  db: Queryable,
  { channel, afterMs }: { channel: string; afterMs: number },
): Promise<number> {
  const renewed = await db.execute(sql`
    with old as materialized (
      select ${n.id} from ${alerts} ${a} join ${notifications} ${n} on ${n.alertId} = ${a.id}
      where ${a.state} <> 'resolved' and ${n.channel} = ${channel} and ${n.state} = 'delivered'
        and ${n.reason} <> 'resolved' and ${n.deliveredAt} < ${later(-afterMs)}
        and not exists (select from ${notifications} ${l}
          where ${l.alertId} = ${n.alertId} and ${l.channel} = ${n.channel} and ${l.transition} > ${n.transition}
            and (${l.state} <> 'undeliverable' or ${isDead(l)}))
      order by ${n.id} for update of ${n} skip locked)
    update ${notifications} ${n} set ${names(n.state)} = 'pending', ${names(n.nextAttemptAt)} = now(),
      ${names(n.replayedAt)} = now()
    from old where ${n.id} = old.id`);
  return renewed.rowCount ?? 0;
}
