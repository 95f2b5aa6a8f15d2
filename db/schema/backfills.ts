import { sql } from "drizzle-orm";
import { bigint, check, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/** How far a backfill that somebody asked for has come, so that it goes on where it was ended. Only `longwatch backfill` uses it. */
export const backfills = pgTable(
  "backfills",
  {
    fromAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    toAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    startedAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** Everything before is stored. */
    doneThrough: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    endedAt: timestamp({ withTimezone: true, precision: 3 }),
    /** Events that nobody had stored before. */
    newEvents: bigint({ mode: "number" }).notNull().default(0),
    zoneId: integer().notNull(),
    route: text({ enum: ["list", "search", "export"] }).notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.fromAt, t.toAt, t.route] }),
    check("backfills_route", sql`${t.route} in ('list', 'search', 'export')`),
    check("backfills_span", sql`${t.fromAt} < ${t.toAt}`),
  ],
);
