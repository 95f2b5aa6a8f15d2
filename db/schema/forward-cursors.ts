import { bigint, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

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
