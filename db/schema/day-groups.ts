import { date, integer, json, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * What one closed UTC day's events of one value of one dimension have in common: the group of a search by that dimension
 * alone. Written by build-cubes with the day's event_cubes, and as true as these; read by the archive API.
 */
export const dayGroups = pgTable(
  "day_groups",
  {
    firstAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    lastAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    zoneId: integer().notNull(),
    day: date({ mode: "string" }).notNull(),
    total: integer().notNull(),
    /** A column of event_cubes. */
    dimension: text().notNull(),
    value: text().notNull(),
    /** Column of event_cubes -> text -> events. */
    tallies: json().$type<Record<string, Record<string, number>>>().notNull(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.day, t.dimension, t.value] })],
);
