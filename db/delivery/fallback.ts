import { sql } from "drizzle-orm";
import type { NotifyReason } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { notifications } from "../schema/notifications.ts";
import { isDead } from "../service/last-errors.ts";

export interface Overdue {
  readonly alertId: number;
  readonly transition: number;
  readonly reason: Exclude<NotifyReason, "advice">;
  /** The channel that has not accepted the message. */
  readonly channel: string;
  readonly content: unknown;
}

/** Messages that were given up longer ago are not copied. */
const DEAD_SINCE = sql`interval '1 day'`;

/**
 * Returns the messages to copy to the fallback channel: those that are undelivered for longer than `afterMs`, those that
 * were given up, and the resolve of every alert that was copied before. Skips what the fallback channel has or gets
 * anyway, and messages that were delivered once and are only sent again to keep an alert open.
 */
export async function readOverdue(
  db: Queryable,
  { fallback, afterMs, limit }: { fallback: string; afterMs: number; limit: number },
): Promise<Overdue[]> {
  const { rows } = await db.execute<{ [Key in keyof Overdue]: Overdue[Key] }>(sql`
    select distinct on (n.alert_id, n.transition) n.alert_id::float8 as "alertId", n.transition, n.reason, n.channel,
      n.content
    from notifications n
    where n.channel <> ${fallback} and n.reason not in ('advice', 'acknowledged') and n.id in (
        select late.id from notifications late where late.state in ('pending', 'sending') and late.delivered_at is null
          and late.created_at < now() - ${afterMs}::double precision * interval '1 millisecond'
        union
        select dead.id from notifications dead
          where ${isDead(sql`dead`)} and dead.delivered_at is null and dead.next_attempt_at > now() - ${DEAD_SINCE}
        union
        select ended.id from notifications copied join notifications ended on ended.alert_id = copied.alert_id
          where copied.stands_in_for is not null and copied.channel = ${fallback} and ended.channel = copied.stands_in_for
            and ended.reason = 'resolved' and ended.transition > copied.transition)
      and not exists (select from notifications copied where copied.alert_id = n.alert_id
        and copied.channel = ${fallback} and copied.transition >= n.transition)
    order by n.alert_id, n.transition, n.channel limit ${limit}`);
  return rows;
}

/** Inserts copies for the fallback channel, due at once. Returns the number of new rows. */
export async function insertFallbackCopies(
  db: Queryable,
  rows: readonly (Omit<Overdue, "channel"> & { channel: string; standsInFor: string; dedupeKey: string })[],
): Promise<number> {
  if (rows.length === 0) return 0;
  const inserted = await db
    .insert(notifications)
    .values([...rows])
    .onConflictDoNothing()
    .returning({ id: notifications.id });
  return inserted.length;
}
