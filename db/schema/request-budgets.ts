import { doublePrecision, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * How many requests all replicas together may send now: a token bucket, written and read before each request. A new
 * bucket is full. The other rows are of zones that the platform refused: such a row has a zone and a pause, and no use
 * for its tokens.
 */
export const requestBudgets = pgTable("request_budgets", {
  /** When `tokens` was last computed. */
  refilledAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
  /** The platform asked for a pause until then. */
  pausedUntil: timestamp({ withTimezone: true, precision: 3 }),
  /** Since when the platform has refused the zone; null after its next answer, and for the bucket. */
  refusedSince: timestamp({ withTimezone: true, precision: 3 }),
  tokens: doublePrecision().notNull(),
  /** Null for the bucket. */
  zoneId: integer(),
  name: text().primaryKey(),
});
