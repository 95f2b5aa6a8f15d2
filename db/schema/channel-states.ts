import { sql } from "drizzle-orm";
import { check, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * What all replicas know of a channel: whether it is worth trying and how much of its rate is spent. Written and read by
 * deliver-alerts; read by the metrics and the delivery commands. No row: closed, nothing spent.
 */
export const channelStates = pgTable(
  "channel_states",
  {
    /** When it opened or was disabled; null while closed. */
    openedAt: timestamp({ withTimezone: true }),
    /** While open: when one message may probe it. */
    retryAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** The rate is spent up to here: as far in the future as messages were sent ahead of it. */
    spentUntil: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Attempts that failed since the last that did not. */
    failures: integer().notNull().default(0),
    /** Of the circuit, since the last success: doubles the pause. */
    openings: integer().notNull().default(0),
    channel: text().primaryKey(),
    state: text({ enum: ["closed", "open", "disabled"] })
      .notNull()
      .default("closed"),
    lastError: text(),
  },
  (t) => [check("channel_states_state", sql`${t.state} in ('closed', 'open', 'disabled')`)],
);
