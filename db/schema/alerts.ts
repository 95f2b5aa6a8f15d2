/** Alerts and what is stored about them: transitions, advice, silences and proposed exclusions. */
import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  unique,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import type { ExclusionClause } from "#model/advice.ts";
import { ALERT_STATES } from "#model/kinds.ts";
import { isOneOf } from "../postgres/terms.ts";
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

/**
 * Every transition of every alert, numbered in the order of their commits. A reader that has seen number n has missed
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

/**
 * Exclusions that Longwatch has proposed, one row per clause. `followedAt` is set when the rule fell silent on the clause
 * while its path did not. Written by judge-verdicts and learn-usual. Templates come from requests: hostile text.
 */
export const exclusions = pgTable(
  "exclusions",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    proposedAt: timestamp({ withTimezone: true }).notNull(),
    /** The rule's last event on the clause, if a person seems to have applied the exclusion. */
    followedAt: timestamp({ withTimezone: true }),
    /** The latest spike that it was proposed for. */
    spikeId: bigint({ mode: "number" }).references(() => spikes.id, { onDelete: "set null" }),
    zoneId: integer().notNull(),
    /** Distinguishes the clauses of a zone: a hash. */
    key: text().notNull(),
    clause: jsonb().$type<ExclusionClause>().notNull(),
  },
  (t) => [uniqueIndex("exclusions_clause").on(t.zoneId, t.key)],
);

/**
 * Notes on the sites at a time, such as a deploy, from a person or a tool. Written by the API; read by the API, raise-alerts
 * and judge-verdicts.
 */
export const notes = pgTable(
  "notes",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    at: timestamp({ withTimezone: true }).notNull(),
    /** Null: all zones. */
    zoneId: integer(),
    /** Hostile text, like the link. */
    text: text().notNull(),
    link: text(),
    createdBy: text().notNull(),
    createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** The deployment that a tool has sent; null for the note of a person. A deployment that is sent again is no second note. */
    source: text().unique(),
  },
  (t) => [index("notes_at").on(t.at)],
);
