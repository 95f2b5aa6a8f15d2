import { sql } from "drizzle-orm";
import { boolean, check, index, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * One clock hour of one zone for the source series: the largest count of each series. The windows of 3, 15 and 60 minutes
 * end in the hour: five times three numbers in the order of `SOURCE_KINDS`. Holds no address. Written
 * by detect-sources from the events; roll-up-trends marks an hour that it counts again.
 */
export const sourceHours = pgTable(
  "source_hours",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    /** Raised whenever an event of the hour arrives later, so that a recount that has missed it is seen. */
    marks: integer().notNull().default(0),
    isStale: boolean().notNull().default(true),
    /** The fingerprint of the known sources that were left out. An hour keeps it when the list changes. */
    known: text().notNull().default(""),
    /** Null until the hour is counted. */
    peaks: integer().array(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.startsAt] }),
    index("source_hours_stale").on(t.zoneId, t.startsAt).where(sql`is_stale`),
    check("source_hours_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
    check("source_hours_peaks", sql`cardinality(${t.peaks}) = 15`),
  ],
);
