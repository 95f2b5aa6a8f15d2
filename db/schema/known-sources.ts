import { bigint, check, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { KNOWN_KINDS } from "#model/kinds.ts";
import { isOneOf } from "../postgres/terms.ts";

/**
 * Sources that a person has named as expected, beside those of the configuration file. Written by `longwatch known` and
 * the API; read by detect-sources, which leaves their events out of the source series. Patterns may be addresses: an
 * erasure covers them.
 */
export const knownSources = pgTable(
  "known_sources",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Null: no end. */
    expiresAt: timestamp({ withTimezone: true }),
    /** Null: every zone. */
    zoneId: integer(),
    kind: text({ enum: KNOWN_KINDS }).notNull(),
    pattern: text().notNull(),
    reason: text().notNull(),
    createdBy: text().notNull(),
  },
  (t) => [check("known_sources_kind", isOneOf(t.kind, KNOWN_KINDS))],
);
