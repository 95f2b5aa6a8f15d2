/** Tables of the destinations of forwarding and of the events that each has acknowledged. */
import { sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  boolean,
  check,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
} from "drizzle-orm/pg-core";
import { ARRIVALS } from "#model/kinds.ts";
import { bytea, bytewiseText, isOneOf } from "../postgres/terms.ts";

/** Whether a destination of forwarded events accepts them. Written by forward-events; read by report-service and the status. */
export const forwardDestinations = pgTable(
  "forward_destinations",
  {
    /** When a process last forwarded to it or tried to. */
    seenAt: timestamp({ withTimezone: true }).notNull(),
    /** When it last acknowledged events. */
    acknowledgedAt: timestamp({ withTimezone: true }),
    /** Null while it works. */
    failingSince: timestamp({ withTimezone: true }),
    /** Nothing is sent before. */
    retryAt: timestamp({ withTimezone: true }),
    /** Failed attempts since the last success. */
    failures: integer().notNull().default(0),
    /** True if the last failure will come again until a person changes something, such as a wrong token. */
    isRefused: boolean().notNull().default(false),
    destination: text().primaryKey(),
    lastError: text(),
  },
  (t) => [check("forward_destinations_failing", sql`(${t.failingSince} is null) = (${t.lastError} is null)`)],
);

/**
 * How far a destination has a zone's events. Written and read by forward-events. A cursor moves only after the destination
 * has acknowledged the events of the minutes that it passes.
 */
export const forwardCursors = pgTable(
  "forward_cursors",
  {
    /** Start of the first hour that is forwarded. */
    since: timestamp({ withTimezone: true }).notNull(),
    /** The last of `changed_minutes` that is forwarded. */
    seq: bigint({ mode: "number" }).notNull(),
    zoneId: integer().notNull(),
    destination: text().notNull(),
  },
  (t) => [primaryKey({ columns: [t.destination, t.zoneId] })],
);

/**
 * One hour of a zone at a destination: how many of its events have arrived. Written by forward-events; read by the
 * status, report-service and the console. An hour without events has no row.
 */
export const forwardHours = pgTable(
  "forward_hours",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    /** The part of the hour that has to be read, apart from changed minutes, and when. */
    lookFrom: timestamp({ withTimezone: true, precision: 3 }),
    lookTo: timestamp({ withTimezone: true, precision: 3 }),
    lookAt: timestamp({ withTimezone: true }),
    acknowledgedAt: timestamp({ withTimezone: true }),
    /** When the arrival was last decided. */
    provenAt: timestamp({ withTimezone: true }),
    /** When the whole hour was sent again, because the destination had fewer events than it had acknowledged. */
    sentAgainAt: timestamp({ withTimezone: true }),
    zoneId: integer().notNull(),
    /** Stored events that the destination has acknowledged with their present values. */
    acknowledged: integer().notNull().default(0),
    /** Stored events that pass the destination's filter, as the last proof, or the last reading of the whole hour with a filter, has counted them. */
    stored: integer(),
    /** Events that the destination has by its own count; null if it cannot be asked. */
    counted: integer(),
    /** True once the hour can no longer change and its receipts are removed. */
    isClosed: boolean().notNull().default(false),
    arrival: text({ enum: ARRIVALS }).notNull().default("open"),
    destination: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.destination, t.zoneId, t.startsAt] }),
    index("forward_hours_looks").on(t.destination, t.zoneId, t.lookAt).where(sql`look_at is not null`),
    index("forward_hours_open").on(t.destination, t.zoneId, t.startsAt).where(sql`arrival <> 'arrived'`),
    check("forward_hours_arrival", isOneOf(t.arrival, ARRIVALS)),
    check("forward_hours_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
    check("forward_hours_look", sql`num_nulls(${t.lookFrom}, ${t.lookTo}, ${t.lookAt}) % 3 = 0`),
  ],
);

/**
 * Events that a destination has acknowledged: twelve bytes per event, one row per batch of one hour. Written and read by
 * forward-events, which sends what has no receipt; removed when the hour has arrived and can no longer change.
 */
export const forwardReceipts = pgTable(
  "forward_receipts",
  {
    /** Times of the first and the last event. */
    firstAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    lastAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    startsAt: timestamp({ withTimezone: true }).notNull(),
    id: bigserial({ mode: "number" }).notNull(),
    zoneId: integer().notNull(),
    destination: text().notNull(),
    receipts: bytea().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.destination, t.zoneId, t.startsAt, t.id] }),
    check("forward_receipts_whole", sql`octet_length(${t.receipts}) % 12 = 0`),
  ],
);

/**
 * Events that a destination will not accept as they are. Written and read by forward-events; listed, and removed to be sent
 * again, by the operations. An event that gets other values is sent again by itself.
 */
export const forwardRefusals = pgTable(
  "forward_refusals",
  {
    occurredAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    refusedAt: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    destination: text().notNull(),
    logId: bytewiseText().notNull(),
    receipt: bytea().notNull(),
    /** The destination's words, cut, with addresses masked. */
    reason: text().notNull(),
  },
  (t) => [primaryKey({ columns: [t.destination, t.zoneId, t.occurredAt, t.logId] })],
);

/**
 * Minutes whose events have changed, in the order in which the changes can be seen. Written by roll-up-trends, which one
 * transaction per zone runs at a time, so a reader that has seen a number has seen every smaller one of its zone. Read by
 * forward-events; removed by manage-partitions when every destination has passed them.
 */
export const changedMinutes = pgTable(
  "changed_minutes",
  {
    minute: timestamp({ withTimezone: true }).notNull(),
    /** A further change of a minute gives it a new number. */
    seq: bigserial({ mode: "number" }).notNull(),
    zoneId: integer().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.minute] }),
    index("changed_minutes_order").on(t.zoneId, t.seq),
    check("changed_minutes_whole_minute", sql`extract(epoch from ${t.minute}) % 60 = 0`),
  ],
);
