import { sql } from "drizzle-orm";
import { check, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * One clock hour of one rule for the spike detector: its events, and the largest count of a window of 3, 15 or 60
 * minutes that ends in it. An hour without events has a row if windows of the hour before reach into it. Written by
 * roll-up-trends from the minute buckets, in their transaction; read by detect-spikes.
 */
export const rulePeaks = pgTable(
  "rule_peaks",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    events: integer().notNull(),
    peak3: integer().notNull(),
    peak15: integer().notNull(),
    peak60: integer().notNull(),
    ruleId: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.ruleId, t.startsAt] }),
    check("rule_peaks_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
    check(
      "rule_peaks_nested",
      sql`${t.peak3} <= ${t.peak15} and ${t.peak15} <= ${t.peak60} and ${t.peak60} > 0`,
    ),
  ],
);
