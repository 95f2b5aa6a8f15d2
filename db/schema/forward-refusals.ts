import { integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { bytea, bytewiseText } from "../postgres/column-types.ts";

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
