import { bigint, boolean, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { spikes } from "./spikes.ts";

/**
 * The platform's answers about a rule, failures included. Written by fetch-advice; read by fetch-advice (budget
 * and cache), raise-alerts and the alert API. `text` is AI output and hostile.
 */
export const advice = pgTable(
  "advice",
  {
    askedAt: timestamp({ withTimezone: true }).notNull(),
    spikeId: bigint({ mode: "number" }).references(() => spikes.id, { onDelete: "set null" }),
    zoneId: integer().notNull(),
    success: boolean().notNull(),
    ruleId: text().notNull(),
    text: text(),
    errorKey: text(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.ruleId, t.askedAt] })],
);
