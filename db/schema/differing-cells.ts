import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * One rule in one hour whose stored count differed from the platform's; never deleted. Written by reconcile-counts;
 * read by repair-window, which repairs cells with fewer events stored, and by `longwatch verify`. An event whose rule
 * is not known counts under ''.
 */
export const differingCells = pgTable(
  "differing_cells",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    firstSeenAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    lastSeenAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** When both counts were last found equal; null while they differ. */
    resolvedAt: timestamp({ withTimezone: true, precision: 3 }),
    /** When the cell may be repaired (again). */
    nextRepairAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    zoneId: integer().notNull(),
    upstreamCount: integer().notNull(),
    storedCount: integer().notNull(),
    repairs: integer().notNull().default(0),
    ruleId: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.startsAt, t.ruleId] }),
    index("differing_cells_unresolved").on(t.zoneId, t.startsAt).where(sql`resolved_at is null`),
    check("differing_cells_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
  ],
);
