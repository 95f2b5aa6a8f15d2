import { sql } from "drizzle-orm";
import { check, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * A route of a zone that shows less than it showed before, or contradicts itself. While a row is not cleared, no hour
 * of the zone is sealed. Written by the jobs that read the route and by seal-windows; read by seal-windows, the
 * coverage reports and report-coverage. The row of a cleared suspicion stays until the next one begins.
 */
export const zoneSuspicions = pgTable(
  "zone_suspicions",
  {
    since: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** The latest look that contradicted. */
    lastSeenAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** The first look since then that did not contradict. */
    agreedSince: timestamp({ withTimezone: true, precision: 3 }),
    /** When two looks far enough apart had agreed; null while the route is suspect. */
    clearedAt: timestamp({ withTimezone: true, precision: 3 }),
    zoneId: integer().notNull(),
    route: text({ enum: ["list", "search", "counts", "metrics", "zone"] }).notNull(),
    reason: text().notNull(),
    /** For the route `metrics`: the platform's counts that were above the stored ones, by rule and day. */
    details: jsonb(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.route] }),
    check("zone_suspicions_route", sql`${t.route} in ('list', 'search', 'counts', 'metrics', 'zone')`),
  ],
);
