import { bigint, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Single ownership and due ticks, by name. Written and read by the queries in leases.ts only. `fence` grows with
 * every change of owner and never falls: rows are released, not deleted. All times are Postgres's.
 */
export const leases = pgTable("leases", {
  fence: bigint({ mode: "number" }).notNull().default(0),
  /** Null when nobody holds it. */
  expiresAt: timestamp({ withTimezone: true }),
  /** For ticks: not before this moment. */
  dueAt: timestamp({ withTimezone: true }),
  name: text().primaryKey(),
  holder: text(),
});
