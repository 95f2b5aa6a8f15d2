import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { notifications } from "../schema/notifications.ts";
import { isDead } from "../service/last-errors.ts";

const n = alias(notifications, "n");
const d = alias(notifications, "d");

export interface FailingChannel {
  readonly channel: string;
  /** When the oldest undelivered message was written; epoch ms. */
  readonly sinceMs: number;
  /** Messages that will be tried again. */
  readonly waiting: number;
  /** Dead letters. */
  readonly givenUp: number;
  readonly lastError: string;
}

/**
 * Returns those of these channels that fail. A channel fails if a message became a dead letter within `graceMs` or
 * after the last delivery, or if a message has failed for longer than `graceMs` without any delivery. `nowMs` is
 * Postgres's time.
 */
export async function readFailingChannels(
  db: Queryable,
  { channels, graceMs }: { channels: readonly string[]; graceMs: number },
): Promise<{ nowMs: number; failing: readonly FailingChannel[] }> {
  const grace = sql`(${graceMs}::double precision * interval '1 millisecond')`;
  const { rows } = await db.execute<{ [Key in keyof FailingChannel]: FailingChannel[Key] }>(sql`
    select c.channel, floor(${epochMs(sql`min(${n.createdAt})`)}) as "sinceMs",
      count(*) filter (where ${n.state} <> 'undeliverable')::integer as waiting,
      count(*) filter (where ${n.state} = 'undeliverable')::integer as "givenUp",
      (array_agg(${n.lastError} order by ${n.nextAttemptAt} desc))[1] as "lastError"
    from unnest(${sql.param([...channels])}::text[]) as c(channel)
    cross join lateral (
      select coalesce(max(${d.deliveredAt}), '-infinity') as at from ${notifications} ${d}
      where ${d.channel} = c.channel and ${d.state} = 'delivered') last
    join ${notifications} ${n} on ${n.channel} = c.channel and ${n.lastError} is not null and (
      ${isDead(n)} and ${n.nextAttemptAt} >= least(last.at, now() - ${grace})
      or ${n.state} in ('pending', 'sending') and coalesce(${n.replayedAt}, ${n.createdAt}) < now() - ${grace}
        and last.at < now() - ${grace})
    group by c.channel order by c.channel`);
  const clock = await db.execute<{ now: number }>(sql`select floor(${epochMs(sql`now()`)}) as now`);
  const [time] = clock.rows;
  if (time === undefined) throw new Error("a query without a from clause returned no row");
  return { nowMs: time.now, failing: rows };
}
