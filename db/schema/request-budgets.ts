import { doublePrecision, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * How many requests all replicas together may send now: a token bucket. Written and read before each request. A new
 * row is full.
 */
export const requestBudgets = pgTable("request_budgets", {
  /** When `tokens` was last computed. */
  refilledAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
  /** The platform asked for a pause until then. */
  pausedUntil: timestamp({ withTimezone: true, precision: 3 }),
  tokens: doublePrecision().notNull(),
  name: text().primaryKey(),
});
