import { sql } from "drizzle-orm";
import { pgTable, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";

/**
 * The fingerprints of the keys for pseudonyms and tombstones. The keys themselves are never in the database. One
 * replica registers the key, the others compare theirs with it. Written by `longwatch privacy rotate-key` and at the
 * first use.
 */
export const pseudonymKeys = pgTable(
  "pseudonym_keys",
  {
    adoptedAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Null while the key is in use. */
    retiredAt: timestamp({ withTimezone: true }),
    keyId: text().primaryKey(),
    /** When a running process last found that it lacks the key in use, with that process's explanation; null: never. */
    missingAt: timestamp({ withTimezone: true }),
    missingBecause: text(),
  },
  () => [uniqueIndex("pseudonym_keys_current").on(sql`(true)`).where(sql`retired_at is null`)],
);
