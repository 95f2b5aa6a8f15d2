/** Tables of the proof of each hour, and of the answers of the platform. */
import { sql } from "drizzle-orm";
import {
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
} from "drizzle-orm/pg-core";
import type { HourLooks, ReadAgain } from "#model/covered-hour.ts";
import { HOUR_STATES, LOOK_ROUTES } from "#model/kinds.ts";
import type { AnsweredBlockList } from "#model/review.ts";
import type { ProvenDay } from "#model/zones.ts";
import { isOneOf } from "../postgres/terms.ts";

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
    /** The latest backfill of the hour; null if there was none. */
    readAgain: jsonb().$type<ReadAgain>(),
    /** The evidence for the latest seal or gap, and the history of seals and reopenings. */
    evidence: jsonb(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.startsAt] }),
    // Nearly every hour is sealed, and most questions are about the others.
    index("coverage_windows_unsealed").on(t.zoneId, t.startsAt).where(sql`state <> 'sealed'`),
    check("coverage_windows_state", isOneOf(t.state, HOUR_STATES)),
    check("coverage_windows_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
    check(
      "coverage_windows_sealed_with_evidence",
      sql`${t.state} <> 'sealed' or (${t.sealedAt} is not null and ${t.evidence} is not null)`,
    ),
    check("coverage_windows_gap_has_reason", sql`${t.state} <> 'gap' or ${t.gapReason} is not null`),
  ],
);

/**
 * One rule in one hour whose stored count differed from the platform's; never deleted. Written by reconcile-counts;
 * read by repair-window, which repairs cells with fewer events stored, and by `longwatch verify`. An event whose rule
 * is not known counts under ''.
 */
export const differingCells = pgTable(
  "differing_cells",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    firstSeenAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    lastSeenAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** When both counts were last found equal; null while they differ. */
    resolvedAt: timestamp({ withTimezone: true, precision: 3 }),
    /** When the cell may be repaired (again). */
    nextRepairAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    zoneId: integer().notNull(),
    upstreamCount: integer().notNull(),
    storedCount: integer().notNull(),
    repairs: integer().notNull().default(0),
    ruleId: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.startsAt, t.ruleId] }),
    index("differing_cells_unresolved").on(t.zoneId, t.startsAt).where(sql`resolved_at is null`),
    check("differing_cells_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
  ],
);

/**
 * A route of a zone whose answers changed as a whole, or contradict themselves. For an hour its answers are held back:
 * nothing that they show is stored, and they prove nothing. Written by the jobs that read the route; read by the same
 * jobs, the coverage reports and report-coverage. The row of a cleared suspicion stays until the next one begins.
 */
export const zoneSuspicions = pgTable(
  "zone_suspicions",
  {
    since: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** The latest look that contradicted. */
    lastSeenAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** When a look did not contradict any more; null while the route is suspect. */
    clearedAt: timestamp({ withTimezone: true, precision: 3 }),
    zoneId: integer().notNull(),
    route: text({ enum: LOOK_ROUTES }).notNull(),
    /** True if the route shows nothing of what is known. Then other routes store nothing that is not recognised either. */
    isWhole: boolean().notNull().default(false),
    reason: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.route] }),
    check("zone_suspicions_route", isOneOf(t.route, LOOK_ROUTES)),
  ],
);

/**
 * How the platform answers for a zone, over all replicas. Written by the jobs' calls, reconcile-counts and
 * report-service; read by report-service, send-heartbeat and every job that asks for hours. `risingUntil` is written by
 * the detector, and read by the sweep and poll-events.
 */
export const platformHealth = pgTable("platform_health", {
  /** Since when the zone has been watched without a break. The zone cannot count as unpolled for longer than that. */
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
  /** The last block list that any process answered. Written by its operation. */
  blockList: jsonb().$type<AnsweredBlockList>(),
  zoneId: integer().primaryKey(),
  /** How long the platform keeps the zone's events, in ms; null while it has not shown less than its 72 hours. */
  keptMs: integer(),
  /** How long it kept them before `keptSince`. */
  keptBeforeMs: integer(),
  /** The error code of the latest refusal. */
  refusedWith: text(),
});
