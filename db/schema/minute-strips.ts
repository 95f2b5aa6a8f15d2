import { sql } from "drizzle-orm";
import { check, date, integer, pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";
import { bytea } from "../column-types.ts";

/**
 * The 1,440 minutes of one closed UTC day, counted for one value of one dimension: the sparklines of groups. Written by
 * build-cubes with the day's event_cubes, and as true as these; read by the archive API. A row per minute would be as
 * many rows as events.
 */
export const minuteStrips = pgTable(
  "minute_strips",
  {
    zoneId: integer().notNull(),
    day: date({ mode: "string" }).notNull(),
    /** Bytes per minute. */
    width: smallint().notNull(),
    /** A column of event_cubes. */
    dimension: text().notNull(),
    value: text().notNull(),
    /** Unsigned, the most significant byte first. */
    counts: bytea().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.day, t.dimension, t.value] }),
    check("minute_strips_whole_day", sql`octet_length(${t.counts}) = 1440 * ${t.width}`),
  ],
);
