import { sql } from "drizzle-orm";
import {
  bigint,
  check,
  doublePrecision,
  index,
  integer,
  jsonb,
  pgTable,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";

/**
 * A rule far above its baseline, from opening to closing; at most one open per zone and rule. Written by
 * detect-spikes; read by fetch-advice, raise-alerts and the spike API.
 */
export const spikes = pgTable(
  "spikes",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    openedAt: timestamp({ withTimezone: true }).notNull(),
    closedAt: timestamp({ withTimezone: true }),
    baseline: doublePrecision().notNull(),
    score: doublePrecision().notNull(),
    /** Highest count of one bucket. */
    peak: integer().notNull(),
    zoneId: integer().notNull(),
    ruleId: text().notNull(),
    /** Top IPs, ASNs, countries, URLs, UAs, JA4s, first and last event. */
    evidence: jsonb().notNull(),
  },
  (t) => [
    uniqueIndex("spikes_open").on(t.zoneId, t.ruleId).where(sql`closed_at is null`),
    index("spikes_opened").on(t.zoneId, t.openedAt),
    check("spikes_close_after_open", sql`${t.closedAt} >= ${t.openedAt}`),
  ],
);
