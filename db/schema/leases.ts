import { bigint, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Single ownership and due ticks, by name. Written and read by the queries in leases.ts only. `fence` increases with
 * every change of owner, and with every claim of a tick. It never decreases: rows are released, not deleted.
 */
export const leases = pgTable("leases", {
  fence: bigint({ mode: "number" }).notNull().default(0),
  /** Null while no process holds the lease. */
  expiresAt: timestamp({ withTimezone: true }),
  /** The time of a tick's next run, by the clock of the process that claimed the last one. */
  dueAt: timestamp({ withTimezone: true }),
  name: text().primaryKey(),
  holder: text(),
});
