import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { NotifyReason } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { notifications } from "../schema/notifications.ts";
import { isDead } from "../service/last-errors.ts";

const n = alias(notifications, "n");
const late = alias(notifications, "late");
const dead = alias(notifications, "dead");
const copied = alias(notifications, "copied");
const ended = alias(notifications, "ended");

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
    select distinct on (${n.alertId}, ${n.transition}) ${n.alertId}::float8 as "alertId", ${n.transition},
      ${n.reason}, ${n.channel}, ${n.content}
    from ${notifications} ${n}
    where ${n.channel} <> ${fallback} and ${n.reason} not in ('advice', 'acknowledged') and ${n.id} in (
        select ${late.id} from ${notifications} ${late}
        where ${late.state} in ('pending', 'sending') and ${late.deliveredAt} is null
          and ${late.createdAt} < now() - ${afterMs}::double precision * interval '1 millisecond'
        union
        select ${dead.id} from ${notifications} ${dead}
        where ${isDead(dead)} and ${dead.deliveredAt} is null and ${dead.nextAttemptAt} > now() - ${DEAD_SINCE}
        union
        select ${ended.id} from ${notifications} ${copied}
        join ${notifications} ${ended} on ${ended.alertId} = ${copied.alertId}
        where ${copied.standsInFor} is not null and ${copied.channel} = ${fallback}
          and ${ended.channel} = ${copied.standsInFor} and ${ended.reason} = 'resolved' and ${ended.transition} > ${copied.transition})
      and not exists (select from ${notifications} ${copied} where ${copied.alertId} = ${n.alertId}
        and ${copied.channel} = ${fallback} and ${copied.transition} >= ${n.transition})
    order by ${n.alertId}, ${n.transition}, ${n.channel} limit ${limit}`);
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
