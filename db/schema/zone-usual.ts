import { check, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { USUAL_DIMENSIONS } from "#model/kinds.ts";
import { bytewiseText } from "../postgres/column-types.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

/**
 * The networks, JA4 fingerprints and path templates that are usual in a zone, and since when. A verdict counts only values
 * that were usual before its alert began, so an attack cannot make itself usual. Written by learn-usual.
 */
export const zoneUsual = pgTable(
  "zone_usual",
  {
    /** The moment at which the value had been seen often enough. */
    since: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    dimension: text({ enum: USUAL_DIMENSIONS }).notNull(),
    value: bytewiseText().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.dimension, t.value] }),
    check("zone_usual_dimension", isOneOf(t.dimension, USUAL_DIMENSIONS)),
  ],
);
