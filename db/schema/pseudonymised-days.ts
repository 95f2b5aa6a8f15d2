import { bigint, date, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Days whose events and alerts hold no full address, so that they are not read again. Kept for good, because an open
 * alert keeps its spike. Only pseudonymise-ips writes it.
 */
export const pseudonymisedDays = pgTable("pseudonymised_days", {
  doneAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  events: bigint({ mode: "number" }).notNull(),
  day: date({ mode: "string" }).primaryKey(),
  keyId: text().notNull(),
});
