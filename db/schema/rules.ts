/** Counts of each rule, and saved plans of which rules block. */
import { sql } from "drizzle-orm";
import {
  bigint,
  check,
  date,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
} from "drizzle-orm/pg-core";
import { BUCKET_WIDTHS } from "#model/kinds.ts";
import type { PlanWatch, SavedReview } from "#model/review.ts";
import { isOneOf } from "../postgres/terms.ts";

/**
 * Event counts per rule and half-open bucket [starts_at, starts_at + width seconds), UTC aligned.
 * Written by roll-up-trends, read by detect-spikes and the trend API; can be rebuilt from waf_events. Events whose
 * rule is unknown or empty count under rule ''. A bucket without events has no row.
 */
export const ruleBuckets = pgTable(
  "rule_buckets",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    /** Seconds. */
    width: integer().notNull(),
    total: integer().notNull(),
    blocked: integer().notNull().default(0),
    logged: integer().notNull().default(0),
    challenged: integer().notNull().default(0),
    other: integer().notNull().default(0),
    ruleId: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.ruleId, t.width, t.startsAt] }),
    // Finds the series that were active in the last hour without reading every series.
    index("rule_buckets_minutes").on(t.startsAt).where(sql`width = 60`),
    // Finds the rules that were seen in the last weeks.
    index("rule_buckets_days").on(t.zoneId, t.startsAt, t.ruleId).where(sql`width = 86400`),
    check("rule_buckets_width", isOneOf(t.width, BUCKET_WIDTHS)),
    check("rule_buckets_aligned", sql`extract(epoch from ${t.startsAt}) % ${t.width} = 0`),
    check(
      "rule_buckets_adds_up",
      sql`${t.total} = ${t.blocked} + ${t.logged} + ${t.challenged} + ${t.other}`,
    ),
  ],
);

/**
 * The platform's own daily counts per rule, 28 days back. Written by snapshot-rule-metrics; read by detect-spikes
 * (baseline before there is history) and `longwatch verify` (second completeness check).
 */
export const ruleMetrics = pgTable(
  "rule_metrics",
  {
    fetchedAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    zoneId: integer().notNull(),
    day: date({ mode: "string" }).notNull(),
    total: integer().notNull(),
    blocked: integer(),
    logged: integer(),
    challenged: integer(),
    ruleId: text().notNull(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.ruleId, t.day] })],
);

/**
 * One clock hour of one rule for the spike detector; its events, and the largest count of a window of 3, 15 or 60
 * minutes that ends in it. An hour without events has a row if windows of the hour before reach into it. Written by
 * roll-up-trends from the minute buckets, in their transaction; read by detect-spikes.
 */
export const rulePeaks = pgTable(
  "rule_peaks",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    events: integer().notNull(),
    peak3: integer().notNull(),
    peak15: integer().notNull(),
    peak60: integer().notNull(),
    ruleId: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.ruleId, t.startsAt] }),
    check("rule_peaks_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
    check(
      "rule_peaks_nested",
      sql`${t.peak3} <= ${t.peak15} and ${t.peak15} <= ${t.peak60} and ${t.peak60} > 0`,
    ),
  ],
);

/**
 * When the platform was last asked for a rule's daily counts, and the outcome. Written and read by
 * snapshot-rule-metrics. The counts themselves are in rule_metrics.
 */
export const ruleSnapshots = pgTable(
  "rule_snapshots",
  {
    askedAt: timestamp({ withTimezone: true }).notNull(),
    /** The earliest time of the next request. */
    dueAt: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    ruleId: text().notNull(),
    /** Null if the platform answered. */
    errorCode: text(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.ruleId] })],
);

/**
 * Plans of which rules of a zone block, as people saved them. Written by the review operations; watch-plans writes what is
 * seen of each. Paths come from requests: hostile text. A deleted plan is kept until its alerts are resolved.
 */
export const reviewPlans = pgTable(
  "review_plans",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    createdAt: timestamp({ withTimezone: true }).notNull(),
    deletedAt: timestamp({ withTimezone: true }),
    zoneId: integer().notNull(),
    name: text().notNull(),
    note: text().notNull(),
    createdBy: text().notNull(),
    plan: jsonb().$type<SavedReview>().notNull(),
    /** Null until it was watched. */
    watch: jsonb().$type<PlanWatch>(),
  },
  (t) => [index("review_plans_zone").on(t.zoneId)],
);
