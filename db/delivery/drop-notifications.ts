/** Notifications that are needless, and why one was not sent. */
import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { ENDINGS } from "#model/words.ts";
import type { Queryable } from "../client.ts";
import { names, type Row } from "../postgres/terms.ts";
import { notifications } from "../schema/notifications.ts";

const n = alias(notifications, "n");
const earlier = alias(notifications, "earlier");
const notifying = alias(notifications, "notifying");
const l = alias(notifications, "l");

/** Reasons whose message is complete without the earlier ones. */
const SAYS_ALL = sql`('first', 'join', 'again', 'worse', 'repeat')`;
const ENDS = sql`${[...ENDINGS]}`;
/** Reasons whose message only adds to an earlier one. */
export const SAYS_LITTLE = sql`('advice', 'acknowledged', 'assigned')`;
export const OPEN = sql`('pending', 'sending')`;
/**
 * The other states. A condition on another row of one alert says `not in` these. With `in OPEN`, Postgres may read the
 * whole index of open rows for each row: by the statistics of days with few messages, that index is nearly empty.
 */
const CLOSED = sql`('delivered', 'undeliverable')`;

/** Returns the condition for a row that no process is sending: it is pending, or the lease of its sender is over. */
export function isIdle(row: NotificationRow): SQL {
  return sql`(${row.state} = 'pending' or (${row.state} = 'sending' and ${row.nextAttemptAt} <= now()))`;
}

/** Returns the condition for a row that only updates the existing message in place, so it notifies no one. */
export function isUpdate(row: NotificationRow): SQL {
  return sql`coalesce((${row.content} ->> 'isQuiet')::boolean, false)`;
}

/** Returns the condition that `later`, of the same alert, replaces `row` completely and notifies at least as loudly. */
export function saysAllOf(later: NotificationRow, row: NotificationRow): SQL {
  return sql`(${later.reason} in ${SAYS_ALL}
    and (${row.reason} in ${SAYS_LITTLE} or ${isUpdate(row)} or not ${isUpdate(later)}))`;
}

/** Drops the unsent acts of people that a channel could show only by posting anew. Returns their number. */
export async function dropUnshown(
  tx: Queryable,
  channel: string,
  reasons: readonly string[],
): Promise<number> {
  if (reasons.length === 0) return 0;
  const dropped = await tx.execute(sql`
    with unshown as materialized (
      select ${n.id} from ${notifications} ${n} where ${n.channel} = ${channel} and ${n.state} = 'pending'
        and ${n.reason} in ${reasons} order by ${n.id} for update of ${n} skip locked)
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

/** Returns the reason of the last transition before `row` that was no addition and reached some recipient, or null. */
function lastNotifying(row: NotificationRow): SQL {
  return sql`(select ${notifying.reason} from ${notifications} ${notifying} where ${notifying.alertId} = ${row.alertId}
    and ${notifying.channel} = ${row.channel} and ${notifying.transition} < ${row.transition}
    and (${notifying.state} = 'delivered' or ${notifying.providerReference} is not null)
    and ${notifying.reason} not in ${SAYS_LITTLE} order by ${notifying.transition} desc limit 1)`;
}

/** Drops superseded rows. Skips locked rows: their sender records the outcome first, and the next claim looks again. */
async function dropSuperseded(tx: Queryable, channel: string, alertIds: number[]): Promise<number> {
  const dropped = await tx.execute(sql`
    with stale as materialized (
      select ${n.id}, later.superseded_by from ${notifications} ${n}
      cross join lateral (
        select min(${l.transition}) as superseded_by from ${notifications} ${l}
        where ${l.alertId} = ${n.alertId} and ${l.channel} = ${n.channel} and ${l.transition} > ${n.transition}
          and ${l.state} not in ${CLOSED} and (
            ${saysAllOf(l, n)}
            or (${l.reason} in ${ENDS} and (${n.reason} in ${SAYS_LITTLE} or ${isDeferred(n)}))
            or (${l.reason} in ${ENDS} and ${n.reason} in ${SAYS_ALL}
              and coalesce(${lastNotifying(n)} not in ${ENDS}, false))
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
      where ${n.channel} = ${channel} and ${n.alertId} in ${alertIds} and ${n.reason} in ${ENDS}
        and ${n.state} in ${OPEN} and ${isIdle(n)} and not exists (${earlierOpen(n)})
        and coalesce(${lastNotifying(n)} in ${ENDS}, true)
      order by ${n.id} for update of ${n} skip locked
    )
    update ${notifications} ${n} set ${names(n.state)} = 'undeliverable', ${names(n.lastError)} = ${ORPHANED}
    from orphan where ${n.id} = orphan.id`);
  return dropped.rowCount ?? 0;
}

export type NotificationRow = Row<typeof notifications>;

const paused = alias(notifications, "paused");

/** The lastErrors of rows that need not be sent. They are no failures of their channel. */
const SUPERSEDED = "superseded by transition ";
export const ORPHANED = "its firing was not delivered to this channel";
export const NOT_SHOWN = "this kind of channel does not show acknowledgements";
/** Prefix of the lastError of a row that waits because its receiver asked for a pause. */
export const WAIT_PREFIX = "asked to wait: ";

/** Begins the lastError of a row that some recipients of its channel have, and others may accept later. */
const DEFERRED_PREFIX = "RECIPIENT_DEFERRED: ";

/** Returns the condition for a row that some recipients of its channel have. It does not delay later transitions. */
function isDeferred(row: NotificationRow): SQL {
  return sql`(${row.state} = 'pending' and starts_with(coalesce(${row.lastError}, ''), ${DEFERRED_PREFIX}))`;
}

/** Returns the condition for a dead letter: a row that was given up although it should have been sent. */
export function isDead(row: NotificationRow): SQL {
  return sql`(${row.state} = 'undeliverable' and coalesce(${row.lastError}, '') not in (${ORPHANED}, ${NOT_SHOWN})
    and not starts_with(coalesce(${row.lastError}, ''), ${SUPERSEDED}))`;
}

/** Returns whether an unsent row did not have to be sent. */
export function isNeedless(lastError: string | null): boolean {
  return lastError === ORPHANED || lastError === NOT_SHOWN || (lastError ?? "").startsWith(SUPERSEDED);
}

/** Returns whether the channel's receiver asked for a pause that is not over. It also applies to rows written since. */
export function isPaused(channel: SQL): SQL {
  return sql`exists (select from ${notifications} ${paused}
    where ${paused.channel} = ${channel} and ${paused.state} = 'pending' and ${paused.nextAttemptAt} > now()
      and starts_with(${paused.lastError}, ${WAIT_PREFIX}))`;
}
