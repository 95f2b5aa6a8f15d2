/** Notifications and the state of each channel. */
import { sql } from "drizzle-orm";
import { bigint, check, index, integer, jsonb, pgTable, text, timestamp, unique } from "drizzle-orm/pg-core";
import { CIRCUIT_STATES, NOTIFICATION_STATES, REASONS } from "#model/kinds.ts";
import { isOneOf } from "../postgres/terms.ts";
import { alerts } from "./alerts.ts";

/**
 * The outbox: one alert transition for one channel. Written by raise-alerts in the alert's transaction, updated by
 * deliver-alerts; read by deliver-alerts, sweep and the delivery API.
 */
export const notifications = pgTable(
  "notifications",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    alertId: bigint({ mode: "number" })
      .notNull()
      .references(() => alerts.id, { onDelete: "cascade" }),
    createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** While sending: when the attempt counts as lost and the row may be taken over. */
    nextAttemptAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    deliveredAt: timestamp({ withTimezone: true }),
    /** When the row became due again: a person replayed it, or its receiver would end the alert. Its age counts from here. */
    replayedAt: timestamp({ withTimezone: true }),
    /** The alert's transition number. */
    transition: integer().notNull(),
    attempts: integer().notNull().default(0),
    reason: text({ enum: REASONS }).notNull(),
    channel: text().notNull(),
    state: text({ enum: NOTIFICATION_STATES }).notNull().default("pending"),
    /** The dedupe key, which is the same for every attempt, so that a receiver recognises a repeated one. */
    dedupeKey: text().notNull(),
    /** Before the delivery: progress of an attempt with a message of several parts. */
    providerReference: text(),
    lastError: text(),
    /** Rows of one key are sent together in one digest; null if the row has to be sent alone. */
    digestKey: text(),
    /** On a copy for the fallback channel: the channel that has not accepted the message. */
    standsInFor: text(),
    /** The message of this transition. */
    content: jsonb().notNull().default({}),
  },
  (t) => [
    unique("notifications_once").on(t.alertId, t.transition, t.channel),
    index("notifications_due").on(t.nextAttemptAt).where(sql`state in ('pending', 'sending')`),
    index("notifications_given_up").on(t.channel).where(sql`state = 'undeliverable'`),
    index("notifications_stand_ins").on(t.alertId).where(sql`stands_in_for is not null`),
    check("notifications_state", isOneOf(t.state, NOTIFICATION_STATES)),
    check("notifications_reason", isOneOf(t.reason, REASONS)),
  ],
);

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
