import { sql } from "drizzle-orm";
import { boolean, check, index, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { ARRIVALS } from "#model/kinds.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

/**
 * One hour of a zone at a destination: how many of its events have arrived. Written by forward-events; read by the
 * status, report-service and the console. An hour without events has no row.
 */
export const forwardHours = pgTable(
  "forward_hours",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    /** The part of the hour that has to be looked at, apart from changed minutes, and when. */
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
    /** Stored events that pass the destination's filter, as the last proof, or the last look at the whole hour with a filter, has counted them. */
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
