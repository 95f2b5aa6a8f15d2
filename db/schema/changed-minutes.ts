import { sql } from "drizzle-orm";
import { bigserial, check, index, integer, pgTable, primaryKey, timestamp } from "drizzle-orm/pg-core";

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
