import { date, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

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
