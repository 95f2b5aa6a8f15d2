import { date, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/**
 * Common values of the events of one closed UTC day for each value of one dimension: the groups of a search by
 * that dimension alone. Written by build-cubes and valid while cube_days says so; read by the archive API. Packed,
 * because one row per value and text would be larger than the events. `db/search/tally-day.ts` describes the format.
 * Texts are codes, which are positions in tally_texts.
 */
export const dayTallies = pgTable(
  "day_tallies",
  {
    zoneId: integer().notNull(),
    day: date({ mode: "string" }).notNull(),
    /** A column of waf_events. */
    dimension: text().notNull(),
    /** For each value: its code, its number of events, the first and the last event. */
    heads: bytea().notNull(),
    /** For each value: how often it occurs with each text of the other dimensions. */
    tallies: bytea().notNull(),
    /** For each event, in the order of its day's times: the code of its value. */
    codes: bytea().notNull(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.day, t.dimension] })],
);
