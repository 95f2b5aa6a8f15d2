import { sql } from "drizzle-orm";
import { check, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { HOUR_STATES } from "#model/kinds.ts";
import type { HourLooks } from "#model/look.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

/**
 * One hour of one zone and what is known about its completeness. Written by poll-events, walk-days,
 * reconcile-counts and seal-windows; read by seal-windows, raise-alerts and the coverage API.
 */
export const coverageWindows = pgTable(
  "coverage_windows",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    /** End of the part of this hour that the search route has covered; null before it has begun. */
    searchedThrough: timestamp({ withTimezone: true, precision: 3 }),
    /** When the hour last gained an event. */
    lastNewAt: timestamp({ withTimezone: true, precision: 3 }),
    /** Start of the latest flat search over the whole hour that began after it had settled and reached its end. */
    closingSearchAt: timestamp({ withTimezone: true, precision: 3 }),
    /** When the platform's grouped count was last asked for and compared; null until then. */
    reconciledAt: timestamp({ withTimezone: true, precision: 3 }),
    sealedAt: timestamp({ withTimezone: true }),
    /** When a seal was last withdrawn; null when that never happened. */
    reopenedAt: timestamp({ withTimezone: true, precision: 3 }),
    /** Looks that began before this prove nothing; null when every look counts. */
    proofFrom: timestamp({ withTimezone: true, precision: 3 }),
    /** When the list last stored an event of this hour that the search had not shown; null when every event is resolved. */
    unresolvedSince: timestamp({ withTimezone: true, precision: 3 }),
    zoneId: integer().notNull(),
    /** Null until the platform's grouped count was read. */
    upstreamCount: integer(),
    /**
     * Number of cells (one rule in this hour) of the latest comparison with fewer events stored than the platform
     * counts.
     */
    missingCells: integer().notNull().default(0),
    /** The same for cells with more events stored. */
    surplusCells: integer().notNull().default(0),
    storedCount: integer().notNull().default(0),
    passes: integer().notNull().default(0),
    state: text({ enum: HOUR_STATES }).notNull().default("open"),
    gapReason: text(),
    reopenReason: text(),
    looks: jsonb().$type<HourLooks>().notNull().default({}),
    /** The evidence for the latest seal or gap, and the history of seals and reopenings. */
    evidence: jsonb(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.startsAt] }),
    check("coverage_windows_state", isOneOf(t.state, HOUR_STATES)),
    check("coverage_windows_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
    check(
      "coverage_windows_sealed_with_evidence",
      sql`${t.state} <> 'sealed' or (${t.sealedAt} is not null and ${t.evidence} is not null)`,
    ),
    check("coverage_windows_gap_has_reason", sql`${t.state} <> 'gap' or ${t.gapReason} is not null`),
  ],
);
