import { integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * How the platform answers for a zone, over all replicas. Written by the jobs' calls and by report-service; read by
 * report-service and send-heartbeat.
 */
export const platformHealth = pgTable("platform_health", {
  /** Since when the zone has been watched without a break. The zone cannot count as quiet for longer than that. */
  watchedSince: timestamp({ withTimezone: true, precision: 3 }).notNull(),
  /** When report-service last checked; null before that. */
  checkedAt: timestamp({ withTimezone: true, precision: 3 }),
  /** When the platform last returned events. */
  answeredAt: timestamp({ withTimezone: true, precision: 3 }),
  /** When the platform first refused a request after its last answer. */
  refusedSince: timestamp({ withTimezone: true, precision: 3 }),
  zoneId: integer().primaryKey(),
  /** The error code of the latest refusal. */
  refusedWith: text(),
});
