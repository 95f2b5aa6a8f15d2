import { integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * How the platform answers for a zone, as far as any replica has heard. Written by the jobs' calls and by report-service;
 * read by report-service and send-heartbeat.
 */
export const platformHealth = pgTable("platform_health", {
  /** Since when the zone is looked after without a break: how long it has been quiet counts from here at the earliest. */
  watchedSince: timestamp({ withTimezone: true, precision: 3 }).notNull(),
  /** When report-service last looked; null before that. */
  checkedAt: timestamp({ withTimezone: true, precision: 3 }),
  /** When events were last asked for and given. */
  answeredAt: timestamp({ withTimezone: true, precision: 3 }),
  /** The first refusal after the last answer before it. */
  refusedSince: timestamp({ withTimezone: true, precision: 3 }),
  zoneId: integer().primaryKey(),
  /** The error code of the latest refusal. */
  refusedWith: text(),
});
