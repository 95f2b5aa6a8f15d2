import { bigint, integer, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Tables of weights that a person fitted from marks. The newest replaces the shipped one; a row without weights returns to
 * it. Written by `verdict fit`; read by judge-verdicts.
 */
export const verdictWeights = pgTable("verdict_weights", {
  id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
  fittedAt: timestamp({ withTimezone: true }).notNull(),
  /** Number of marked spikes that it was fitted from. */
  marks: integer().notNull(),
  fittedBy: text().notNull(),
  weights: jsonb(),
});
