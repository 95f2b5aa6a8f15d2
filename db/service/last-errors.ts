import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Row } from "../postgres/terms.ts";
import { notifications } from "../schema/notifications.ts";

export type NotificationRow = Row<typeof notifications>;

const paused = alias(notifications, "paused");

/** The lastErrors of rows that need not be sent. They are no failures of their channel. */
export const SUPERSEDED = "superseded by transition ";
export const ORPHANED = "its firing was not delivered to this channel";
export const NOT_SHOWN = "this kind of channel does not show acknowledgements";
/** Prefix of the lastError of a row that waits because its receiver asked for a pause. */
export const WAIT_PREFIX = "asked to wait: ";

/** Begins the lastError of a row that some recipients of its channel have, and others may accept later. */
const DEFERRED_PREFIX = "RECIPIENT_DEFERRED: ";

/** Returns the condition for a row that some recipients of its channel have. It does not delay later transitions. */
export function isDeferred(row: NotificationRow): SQL {
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

/**
 * Returns whether the channel's receiver has asked for a pause that is not over. The pause applies to all rows, even
 * to those written since.
 */
export function isPaused(channel: SQL): SQL {
  return sql`exists (select from ${notifications} ${paused}
    where ${paused.channel} = ${channel} and ${paused.state} = 'pending' and ${paused.nextAttemptAt} > now()
      and starts_with(${paused.lastError}, ${WAIT_PREFIX}))`;
}
