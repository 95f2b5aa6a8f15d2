import { sql } from "drizzle-orm";
import {
  bigint,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { ALERT_STATES } from "#model/kinds.ts";
import { isOneOf } from "../postgres/is-one-of.ts";
import { spikes } from "./spikes.ts";

/**
 * An alert; at most one unresolved per fingerprint. Written by raise-alerts and the acknowledge route; read by
 * deliver-alerts, the alert API and the feeds.
 */
export const alerts = pgTable(
  "alerts",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    firedAt: timestamp({ withTimezone: true }).notNull(),
    acknowledgedAt: timestamp({ withTimezone: true }),
    resolvedAt: timestamp({ withTimezone: true }),
    spikeId: bigint({ mode: "number" }).references(() => spikes.id, { onDelete: "set null" }),
    /** Null if the alert is about Longwatch itself and no single zone. */
    zoneId: integer(),
    /** Number of the latest transition, from 1; `transitions` holds as many. */
    transition: integer().notNull().default(1),
    state: text({ enum: ALERT_STATES }).notNull().default("firing"),
    kind: text().notNull(),
    fingerprint: text().notNull(),
    ruleId: text(),
    acknowledgedBy: text(),
    transitions: jsonb().notNull().default([]),
    details: jsonb().notNull().default({}),
  },
  (t) => [
    index("alerts_spike").on(t.spikeId),
    uniqueIndex("alerts_open").on(t.fingerprint).where(sql`state <> 'resolved'`),
    check("alerts_state", isOneOf(t.state, ALERT_STATES)),
    check("alerts_resolved_at", sql`(${t.state} = 'resolved') = (${t.resolvedAt} is not null)`),
  ],
);
