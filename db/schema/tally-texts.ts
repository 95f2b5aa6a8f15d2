import { integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";

/**
 * The texts that the codes in a zone's day_tallies stand for. Written by build-cubes, which only ever appends; read
 * by the archive API. Never cleared: there are few, none is personal data, and the meaning of a code must not change.
 */
export const tallyTexts = pgTable(
  "tally_texts",
  {
    zoneId: integer().notNull(),
    /** A column of waf_events. */
    dimension: text().notNull(),
    /** Texts by code. A value that an event does not have is ''. */
    texts: json().$type<string[]>().notNull(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.dimension] })],
);
