import { integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";

/**
 * The texts that day_tallies of a zone speak of. Written by build-cubes, which only ever adds to the end; read by the
 * archive API. Never cleared: there are few, none is about a person, and what they stand for must not change.
 */
export const tallyTexts = pgTable(
  "tally_texts",
  {
    zoneId: integer().notNull(),
    /** A column of waf_events. */
    dimension: text().notNull(),
    /** What an event does not know is ''. */
    texts: json().$type<string[]>().notNull(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.dimension] })],
);
