import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { notifications } from "../schema/notifications.ts";
import { isDeferred, NOT_SHOWN, type NotificationRow, ORPHANED, SUPERSEDED } from "../service/last-errors.ts";

const n = alias(notifications, "n");
const earlier = alias(notifications, "earlier");
const notifying = alias(notifications, "notifying");
const l = alias(notifications, "l");

/** Reasons whose message is complete without the earlier ones. */
const SAYS_ALL = sql`('first', 'join', 'worse', 'repeat')`;
/** Reasons whose message only adds to an earlier one. */
const SAYS_LITTLE = sql`('advice', 'acknowledged')`;
export const OPEN = sql`('pending', 'sending')`;
/**
 * The other states. A condition on another row of one alert says `not in` these. With `in OPEN`, Postgres may read the
 * whole index of open rows for each row: by the statistics of quiet days, that index is nearly empty.
 */
const CLOSED = sql`('delivered', 'undeliverable')`;

/** Returns the condition for a row that no process is sending: it is pending, or the lease of its sender is over. */
export function isIdle(row: NotificationRow): SQL {
  return sql`(${row.state} = 'pending' or (${row.state} = 'sending' and ${row.nextAttemptAt} <= now()))`;
}

/** Returns the condition for a row that only updates the existing message in place, so it notifies no one. */
export function isQuiet(row: NotificationRow): SQL {
  return sql`coalesce((${row.content} ->> 'isQuiet')::boolean, false)`;
}

/**
 * Returns the condition that `later`, a later row of the same alert, replaces `row` completely and notifies at least
 * as loudly.
 */
export function saysAllOf(later: NotificationRow, row: NotificationRow): SQL {
  return sql`(${later.reason} in ${SAYS_ALL}
    and (${row.reason} in ${SAYS_LITTLE} or ${isQuiet(row)} or not ${isQuiet(later)}))`;
}

/** Drops the unsent acknowledgements for a channel that could show them only by posting anew. Returns their number. */
export async function dropAcknowledgements(tx: Queryable, channel: string): Promise<number> {
  const dropped = await tx.execute(sql`
    with unshown as materialized (
      select ${n.id} from ${notifications} ${n} where ${n.channel} = ${channel} and ${n.state} = 'pending'
        and ${n.reason} = 'acknowledged' order by ${n.id} for update of ${n} skip locked)
    update ${notifications} ${n} set ${names(n.state)} = 'undeliverable', ${names(n.lastError)} = ${NOT_SHOWN}
    from unshown where ${n.id} = unshown.id`);
  return dropped.rowCount ?? 0;
}

/** Drops the rows of the due alerts that `claimDueNotifications` describes as needless. Returns their number. */
export async function dropNeedless(
  tx: Queryable,
  channel: string,
  due: readonly { alertId: number }[],
): Promise<number> {
  if (due.length === 0) return 0;
  const alertIds = [...new Set(due.map(({ alertId }) => alertId))];
  const superseded = await dropSuperseded(tx, channel, alertIds);
  return superseded + (await dropOrphanedResolves(tx, channel, alertIds));
}

/** Returns the open transitions of the row's alert on its channel that come before the row and delay it. */
export function earlierOpen(row: NotificationRow): SQL {
  return sql`select from ${notifications} ${earlier} where ${earlier.alertId} = ${row.alertId}
    and ${earlier.channel} = ${row.channel} and ${earlier.transition} < ${row.transition}
    and ${earlier.state} not in ${CLOSED} and not ${isDeferred(earlier)}`;
}

/**
 * Returns the reason of the last transition before `row` that was not an addition and that was delivered, or of which
 * a part or some recipients were reached; null if there is none.
 */
function lastNotifying(row: NotificationRow): SQL {
  return sql`(select ${notifying.reason} from ${notifications} ${notifying} where ${notifying.alertId} = ${row.alertId}
    and ${notifying.channel} = ${row.channel} and ${notifying.transition} < ${row.transition}
    and (${notifying.state} = 'delivered' or ${notifying.providerReference} is not null)
    and ${notifying.reason} not in ${SAYS_LITTLE} order by ${notifying.transition} desc limit 1)`;
}

/**
 * Drops superseded rows. Skips locked rows: the sender that locks a row records its outcome first, and the next claim
 * looks again.
 */
async function dropSuperseded(tx: Queryable, channel: string, alertIds: number[]): Promise<number> {
  const dropped = await tx.execute(sql`
    with stale as materialized (
      select ${n.id}, later.superseded_by from ${notifications} ${n}
      cross join lateral (
        select min(${l.transition}) as superseded_by from ${notifications} ${l}
        where ${l.alertId} = ${n.alertId} and ${l.channel} = ${n.channel} and ${l.transition} > ${n.transition}
          and ${l.state} not in ${CLOSED} and (
            ${saysAllOf(l, n)}
            or (${l.reason} = 'resolved' and (${n.reason} in ${SAYS_LITTLE} or ${isDeferred(n)}))
            or (${l.reason} = 'resolved' and ${n.reason} in ${SAYS_ALL}
              and coalesce(${lastNotifying(n)} in ${SAYS_ALL}, false))
          )
      ) later
      where ${n.channel} = ${channel} and ${n.alertId} in ${alertIds} and ${n.state} in ${OPEN} and ${isIdle(n)}
        and later.superseded_by is not null
      order by ${n.id} for update of ${n} skip locked
    )
    update ${notifications} ${n} set ${names(n.state)} = 'undeliverable',
      ${names(n.lastError)} = ${SUPERSEDED} || stale.superseded_by
    from stale where ${n.id} = stale.id`);
  return dropped.rowCount ?? 0;
}

async function dropOrphanedResolves(tx: Queryable, channel: string, alertIds: number[]): Promise<number> {
  const dropped = await tx.execute(sql`
    with orphan as materialized (
      select ${n.id} from ${notifications} ${n}
      where ${n.channel} = ${channel} and ${n.alertId} in ${alertIds} and ${n.reason} = 'resolved'
        and ${n.state} in ${OPEN} and ${isIdle(n)} and not exists (${earlierOpen(n)})
        and coalesce(${lastNotifying(n)} not in ${SAYS_ALL}, true)
      order by ${n.id} for update of ${n} skip locked
    )
    update ${notifications} ${n} set ${names(n.state)} = 'undeliverable', ${names(n.lastError)} = ${ORPHANED}
    from orphan where ${n.id} = orphan.id`);
  return dropped.rowCount ?? 0;
}
