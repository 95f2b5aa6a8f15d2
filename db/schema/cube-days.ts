import { sql } from "drizzle-orm";
import { check, date, integer, pgTable, primaryKey, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/**
 * Counts of one closed UTC day of one zone, made in advance. Written by build-cubes and, on every change of the day's
 * events, by a trigger on the day's partition; read by the archive API. The counts match the events exactly when
 * `built_marks` equals `marks`.
 */
export const cubeDays = pgTable(
  "cube_days",
  {
    builtAt: timestamp({ withTimezone: true }),
    zoneId: integer().notNull(),
    day: date({ mode: "string" }).notNull(),
    /** Incremented in every transaction that changes the day's events. */
    marks: integer().notNull().default(0),
    /** `marks` at the time when the day was counted; null until then. */
    builtMarks: integer(),
    /** Number of the day's events. */
    total: integer().notNull().default(0),
    /** Times of the events, ascending; null until the day is counted. `db/search/tally-day.ts` describes the format. */
    times: bytea(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.day] }),
    check("cube_days_built", sql`(${t.builtMarks} is null) = (${t.builtAt} is null)`),
  ],
);
