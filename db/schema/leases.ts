import { bigint, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Single ownership and due ticks, by name. Written and read by the queries in leases.ts only. `fence` increases with
 * every change of owner and never decreases: rows are released, not deleted. All times are Postgres's.
 */
export const leases = pgTable("leases", {
  fence: bigint({ mode: "number" }).notNull().default(0),
  /** Null while no process holds the lease. */
  expiresAt: timestamp({ withTimezone: true }),
  /** The earliest time of the next tick. */
  dueAt: timestamp({ withTimezone: true }),
  name: text().primaryKey(),
  holder: text(),
});
