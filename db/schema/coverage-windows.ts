import { sql } from "drizzle-orm";
import { check, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/** Stored events that a look did not show. */
export interface LookLacks {
  readonly count: number;
  /** How many of them the search route had shown before. */
  readonly known: number;
  /** The first log ids, in order. Empty for counts. */
  readonly ids: readonly string[];
  /** Rule to number of events. */
  readonly rules: Readonly<Record<string, number>>;
}

/** What one complete reading of an hour by one route showed; times in epoch ms. */
export interface Look {
  /** When the look began. */
  readonly at: number;
  /** When the first look of the unbroken run of looks began that all showed exactly the same. */
  readonly since: number;
  readonly pages: number;
  readonly count: number;
  /** Digest of what was shown: of the log ids, or for counts of the cells. */
  readonly ids: string;
  /** The highest count that this route has shown of this hour. */
  readonly peak: number;
  readonly lacks?: LookLacks;
}

/** The latest look of each route. */
export interface HourLooks {
  readonly list?: Look;
  readonly search?: Look;
  readonly counts?: Look;
}

/**
 * One hour of one zone and what is known about its completeness. Written by poll-events, walk-days,
 * reconcile-counts and seal-windows; read by seal-windows, raise-alerts and the coverage API.
 */
export const coverageWindows = pgTable(
  "coverage_windows",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    /** How far the search route has covered this hour; null when it has not begun. */
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
    /** Looks that began before it prove nothing; null when every look counts. */
    proofFrom: timestamp({ withTimezone: true, precision: 3 }),
    /** When the list last stored an event of this hour that the search had not shown; null when every event is resolved. */
    unresolvedSince: timestamp({ withTimezone: true, precision: 3 }),
    zoneId: integer().notNull(),
    /** Null until the platform's grouped count was read. */
    upstreamCount: integer(),
    /** Of the latest comparison: cells (one rule in this hour) that hold fewer events here than there. */
    missingCells: integer().notNull().default(0),
    /** The same for cells that hold more. */
    surplusCells: integer().notNull().default(0),
    storedCount: integer().notNull().default(0),
    passes: integer().notNull().default(0),
    state: text({ enum: ["open", "sealed", "gap"] })
      .notNull()
      .default("open"),
    gapReason: text(),
    reopenReason: text(),
    looks: jsonb().$type<HourLooks>().notNull().default({}),
    /** What led to the latest seal or gap, and the history of seals and reopenings. */
    evidence: jsonb(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.startsAt] }),
    check("coverage_windows_state", sql`${t.state} in ('open', 'sealed', 'gap')`),
    check("coverage_windows_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
    check(
      "coverage_windows_sealed_with_evidence",
      sql`${t.state} <> 'sealed' or (${t.sealedAt} is not null and ${t.evidence} is not null)`,
    ),
    check("coverage_windows_gap_has_reason", sql`${t.state} <> 'gap' or ${t.gapReason} is not null`),
  ],
);
