import { sql } from "drizzle-orm";
import { boolean, check, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * The minutes of a zone's hour that the detectors have judged. An hour is judged if each minute was, with all its stored
 * events: `judged` in judged-hours.ts is the condition. Written by detect-spikes, detect-sources and judge-late; a
 * table beside `coverage_windows`, because whoever stores a page locks the rows of that one.
 */
export const judgedHours = pgTable(
  "judged_hours",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    /** The minutes that the detector of rules has judged one after the other, [from, through). */
    rulesFrom: timestamp({ withTimezone: true }),
    rulesThrough: timestamp({ withTimezone: true }),
    /** Whether a tick judged minutes of the hour when they were new. Hours before the first of these are history. */
    isLive: boolean().notNull().default(false),
    judgedAt: timestamp({ withTimezone: true }),
    zoneId: integer().notNull(),
    /** The number of events that the hour had when its sources were judged; null before that. */
    events: integer(),
    /** The settings, as a short fingerprint, or `TOO_LITTLE_HISTORY`. */
    judgedWith: text(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.startsAt] }),
    check("judged_hours_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
    check("judged_hours_judged", sql`(${t.judgedAt} is null) = (${t.judgedWith} is null)`),
  ],
);
