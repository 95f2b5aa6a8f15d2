import { integer, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type { TickName, TickReport } from "#model/schedule.ts";

/**
 * One row per process of the service. Each process writes its own row at its start, every few seconds and at its stop.
 * Read by the status. manage-partitions deletes rows that are old. All times are Postgres's.
 */
export const replicas = pgTable("replicas", {
  startedAt: timestamp({ withTimezone: true, precision: 3 }).notNull().defaultNow(),
  seenAt: timestamp({ withTimezone: true, precision: 3 }).notNull().defaultNow(),
  /** Null while the process runs, and forever if it was killed. */
  stoppedAt: timestamp({ withTimezone: true, precision: 3 }),
  /** Unique within `host` and its process namespace only. */
  pid: integer().notNull(),
  /** Made at the start of the process. */
  id: text().primaryKey(),
  host: text().notNull(),
  version: text().notNull(),
  roles: text().array().notNull(),
  zoneIds: integer().array().notNull(),
  /** The ticks that the process has, with the last run of each job in it. */
  ticks: jsonb().$type<Partial<Record<TickName, TickReport>>>().notNull().default({}),
});
