import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { isDead } from "../service/last-errors.ts";
import { later } from "./notifications.ts";

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
      select n.id from alerts a join notifications n on n.alert_id = a.id
      where a.state <> 'resolved' and n.channel = ${channel} and n.state = 'delivered' and n.reason <> 'resolved'
        and n.delivered_at < ${later(-afterMs)}
        and not exists (select from notifications l where l.alert_id = n.alert_id and l.channel = n.channel
          and l.transition > n.transition and (l.state <> 'undeliverable' or ${isDead(sql`l`)}))
      order by n.id for update of n skip locked)
    update notifications n set state = 'pending', next_attempt_at = now(), replayed_at = now()
    from old where n.id = old.id`);
  return renewed.rowCount ?? 0;
}
