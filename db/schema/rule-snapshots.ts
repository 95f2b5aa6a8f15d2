import { integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

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
