import { integer, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";

import type { ProvenDay } from "#model/proven-day.ts";

/**
 * How the platform answers for a zone, over all replicas. Written by the jobs' calls, reconcile-counts and
 * report-service; read by report-service, send-heartbeat and every job that asks for hours. `risingUntil` is written by
 * the detector, and read by the sweep and poll-events.
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
  /** Since when the platform keeps the zone's events for only `keptMs`. */
  keptSince: timestamp({ withTimezone: true, precision: 3 }),
  /** Until when the zone is polled more often, because something of it is near its threshold. */
  risingUntil: timestamp({ withTimezone: true, precision: 3 }),
  /** The UTC days (`yyyy-MM-dd`) of which metrics counted more than is stored, and that were proven anew. */
  provenDays: jsonb().$type<Readonly<Record<string, ProvenDay>>>(),
  zoneId: integer().primaryKey(),
  /** How long the platform keeps the zone's events, in ms; null while it has not shown less than its 72 hours. */
  keptMs: integer(),
  /** How long it kept them before `keptSince`. */
  keptBeforeMs: integer(),
  /** The error code of the latest refusal. */
  refusedWith: text(),
});
