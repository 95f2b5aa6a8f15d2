import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { BUCKET_WIDTHS } from "#model/kinds.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

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
