import { check, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { CIRCUIT_STATES } from "#model/kinds.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

/**
 * State of a channel, shared by all replicas: its circuit and the spent part of its rate. Written and read by
 * deliver-alerts; read by the metrics and the delivery commands. Without a row the circuit is closed and nothing is
 * spent.
 */
export const channelStates = pgTable(
  "channel_states",
  {
    /** When the circuit opened or the channel was disabled; null while closed. */
    openedAt: timestamp({ withTimezone: true }),
    /** While the circuit is open: when one message may probe the channel. */
    retryAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** The rate is spent up to this time. It lies as far in the future as messages were sent ahead of the rate. */
    spentUntil: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Failed attempts since the last success. */
    failures: integer().notNull().default(0),
    /** Openings of the circuit since the last success. Each one doubles the pause. */
    openings: integer().notNull().default(0),
    channel: text().primaryKey(),
    state: text({ enum: CIRCUIT_STATES }).notNull().default("closed"),
    lastError: text(),
  },
  (t) => [check("channel_states_state", isOneOf(t.state, CIRCUIT_STATES))],
);
