import { sql } from "drizzle-orm";
import { bigint, check, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/** Silences: the alerts that they mute, until when and why. Written by the silence API; read by raise-alerts. */
export const silences = pgTable(
  "silences",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    startsAt: timestamp({ withTimezone: true }).notNull(),
    expiresAt: timestamp({ withTimezone: true }).notNull(),
    createdBy: text().notNull(),
    reason: text().notNull(),
    matchers: jsonb().notNull(),
  },
  (t) => [check("silences_end_after_start", sql`${t.expiresAt} > ${t.startsAt}`)],
);
