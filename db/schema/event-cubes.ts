import { date, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * How many events of one closed UTC day had one combination of the dimensions with few values. Written by build-cubes,
 * read by the archive API where cube_days says that the day's counts are the events'. What an event does not know
 * counts as ''. The key is a number because five texts can be longer than an index takes.
 */
export const eventCubes = pgTable(
  "event_cubes",
  {
    firstAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    lastAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    zoneId: integer().notNull(),
    day: date({ mode: "string" }).notNull(),
    cell: integer().notNull(),
    total: integer().notNull(),
    feature: text().notNull(),
    ruleId: text().notNull(),
    asn: text().notNull(),
    country: text().notNull(),
    action: text().notNull(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.day, t.cell] })],
);
