import { bigint, integer, jsonb, pgTable, text, unique } from "drizzle-orm/pg-core";
import { alerts } from "./alerts.ts";

/**
 * Every transition of every alert, numbered in the order in which they were committed: who has seen number n has missed
 * nothing before it. Written by a trigger at the end of whichever transaction moves an alert on; read by the alert stream.
 */
export const alertTransitions = pgTable(
  "alert_transitions",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    alertId: bigint({ mode: "number" })
      .notNull()
      .references(() => alerts.id, { onDelete: "cascade" }),
    /** The alert's transition number. */
    transition: integer().notNull(),
    /** The entry of the alert's own history. */
    entry: jsonb().notNull(),
    /** What the alert then said; hostile text. Null where it said nothing. */
    headline: text(),
  },
  (t) => [unique("alert_transitions_once").on(t.alertId, t.transition)],
);
