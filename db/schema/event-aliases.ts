import { index, integer, pgTable, primaryKey, timestamp } from "drizzle-orm/pg-core";
import { bytewiseText } from "../postgres/column-types.ts";

/**
 * A second time under which the platform has shown an event. The event is stored once, at `kept_at`. Written by
 * reconcile-counts and seal-windows; read by every writer of events, so that the event is not stored again. Its record
 * may be kept under either time, so an alias is kept as long as raw_blocks has one of the two days.
 */
export const eventAliases = pgTable(
  "event_aliases",
  {
    otherAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    keptAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    notedAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    zoneId: integer().notNull(),
    logId: bytewiseText().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.otherAt, t.logId] }),
    // Finds the records of a stored event.
    index("event_aliases_kept").on(t.zoneId, t.keptAt, t.logId),
  ],
);
