import { type SQL, sql } from "drizzle-orm";

/** The lastErrors of rows that need not be sent: no failure of their channel. */
export const SUPERSEDED = "superseded by transition ";
export const ORPHANED = "its firing was not delivered to this channel";
export const NOT_SHOWN = "this kind of channel does not show acknowledgements";
/** Begins the lastError of a row that waits by its receiver's word. */
export const WAIT_PREFIX = "told to wait: ";

/** Given up although it should have been sent. */
export function isDead(row: SQL): SQL {
  return sql`(${row}.state = 'undeliverable' and coalesce(${row}.last_error, '') not in (${ORPHANED}, ${NOT_SHOWN})
    and not starts_with(coalesce(${row}.last_error, ''), ${SUPERSEDED}))`;
}

/** Of a row that was not sent: whether that was right. */
export function isNeedless(lastError: string | null): boolean {
  return lastError === ORPHANED || lastError === NOT_SHOWN || (lastError ?? "").startsWith(SUPERSEDED);
}

/** A receiver that asked for a pause asked it for everything, also for what was written since. */
export function isPaused(channel: SQL): SQL {
  return sql`exists (select from notifications paused where paused.channel = ${channel} and paused.state = 'pending'
    and paused.next_attempt_at > now() and starts_with(paused.last_error, ${WAIT_PREFIX}))`;
}
