import { boolean, check, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { LOOK_ROUTES } from "#model/kinds.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

/**
 * A route of a zone whose answers changed as a whole, or contradict themselves. For an hour its answers are held back:
 * nothing that they show is stored, and they prove nothing. Written by the jobs that read the route; read by the same
 * jobs, the coverage reports and report-coverage. The row of a cleared suspicion stays until the next one begins.
 */
export const zoneSuspicions = pgTable(
  "zone_suspicions",
  {
    since: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** The latest look that contradicted. */
    lastSeenAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** When a look did not contradict any more; null while the route is suspect. */
    clearedAt: timestamp({ withTimezone: true, precision: 3 }),
    zoneId: integer().notNull(),
    route: text({ enum: LOOK_ROUTES }).notNull(),
    /** True if the route shows nothing of what is known. Then other routes store nothing that is not recognised either. */
    isWhole: boolean().notNull().default(false),
    reason: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.route] }),
    check("zone_suspicions_route", isOneOf(t.route, LOOK_ROUTES)),
  ],
);
