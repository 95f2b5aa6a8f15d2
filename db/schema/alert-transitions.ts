import { bigint, integer, jsonb, pgTable, text, unique } from "drizzle-orm/pg-core";
import { alerts } from "./alerts.ts";

/**
 * Every transition of every alert, numbered in the order of their commits: a reader that has seen number n has missed
 * no lower number. Written by a trigger at the end of the transaction that changes an alert; read by the alert
 * stream.
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
    /** Headline of the alert's message at this transition; hostile text. Null if there was none. */
    headline: text(),
  },
  (t) => [unique("alert_transitions_once").on(t.alertId, t.transition)],
);
