import { date, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/**
 * What one closed UTC day's events of each value of one dimension have in common: the groups of a search by that dimension
 * alone. Written by build-cubes and true when cube_days says so; read by the archive API. Packed, because a row per value
 * and text would be more than the events: `db/search/tally-day.ts` says how. Texts are codes, places in
 * tally_texts.
 */
export const dayTallies = pgTable(
  "day_tallies",
  {
    zoneId: integer().notNull(),
    day: date({ mode: "string" }).notNull(),
    /** A column of waf_events. */
    dimension: text().notNull(),
    /** Of each value its code, its events, the first and the last. */
    heads: bytea().notNull(),
    /** Of each value: how often it meets each text of the other dimensions. */
    tallies: bytea().notNull(),
    /** Of each event, in the order of its day's times: the code of its value. */
    codes: bytea().notNull(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.day, t.dimension] })],
);
