import { sql } from "drizzle-orm";
import { check, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Minutes whose counts are stale. Written in the transaction that writes the events, deleted by roll-up-trends in the
 * transaction that counts them. A writer raises `marks` (on conflict do update) and never skips an existing row: it
 * must lock the row, or a roll-up that cannot see its events yet could delete the mark before they commit.
 */
export const dirtyBuckets = pgTable(
  "dirty_buckets",
  {
    minute: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    marks: integer().notNull().default(1),
    ruleId: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.ruleId, t.minute] }),
    check("dirty_buckets_whole_minute", sql`extract(epoch from ${t.minute}) % 60 = 0`),
  ],
);
