import { sql } from "drizzle-orm";
import { bigserial, check, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

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
