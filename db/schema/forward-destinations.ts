import { sql } from "drizzle-orm";
import { boolean, check, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";

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
