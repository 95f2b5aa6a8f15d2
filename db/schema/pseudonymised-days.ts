import { bigint, date, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/** Days whose events hold no full address, so that they are not read again. Only pseudonymise-ips uses it. */
export const pseudonymisedDays = pgTable("pseudonymised_days", {
  doneAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  events: bigint({ mode: "number" }).notNull(),
  day: date({ mode: "string" }).primaryKey(),
  keyId: text().notNull(),
});
