import { sql } from "drizzle-orm";
import { pgTable, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";

/**
 * Which key pseudonyms and tombstones are made with, by its fingerprint: the key itself is never in the database. Of all
 * replicas one registers it, the others compare. Written by `longwatch privacy rotate-key` and at the first use.
 */
export const pseudonymKeys = pgTable(
  "pseudonym_keys",
  {
    adoptedAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Null: in use. */
    retiredAt: timestamp({ withTimezone: true }),
    keyId: text().primaryKey(),
    /** When a running process last found that it lacks the key in use, and how that process puts it; null: never. */
    missingAt: timestamp({ withTimezone: true }),
    missingBecause: text(),
  },
  () => [uniqueIndex("pseudonym_keys_current").on(sql`(true)`).where(sql`retired_at is null`)],
);
