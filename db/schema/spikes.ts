/** Spikes and their verdicts. */
import { sql } from "drizzle-orm";
import {
  type AnyPgColumn,
  bigint,
  boolean,
  check,
  doublePrecision,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import type { CustomCondition } from "#model/custom-condition.ts";
import {
  CHANGE_KINDS,
  type EvidenceDimension,
  GRADINGS,
  MARKS,
  SPIKE_KINDS,
  SPIKE_SEVERITIES,
  VERDICT_TIMES,
  VERDICTS,
  WINDOWS,
} from "#model/kinds.ts";
import type { RuleChange } from "#model/rules.ts";
import type { StoredSources } from "#model/stored-sources.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { isOneOf } from "../postgres/terms.ts";

/**
 * Common values of the events of a spike. Values come from requests: hostile text, at most 300 code points. Times
 * are ISO 8601.
 */
export interface SpikeEvidence {
  /** The span of the events, [from, to). */
  readonly from: string;
  readonly to: string;
  /** Events of the rule since the spike's window began. */
  readonly total: number;
  /** Number of newest events over which `top` was counted; 0 while nothing was collected. */
  readonly sampled: number;
  readonly firstEventAt: string | null;
  readonly lastEventAt: string | null;
  /** The five most common known values of each dimension. `share` is relative to the sampled events. */
  readonly top: Readonly<
    Record<EvidenceDimension, readonly { value: string; count: number; share: number }[]>
  >;
  /** Events of each of the sixty minutes up to `to`. */
  readonly sparkline: readonly number[];
}

const IS_CHANGE = sql.raw(CHANGE_KINDS.map((kind) => `kind = '${kind}'`).join(" or "));

/**
 * A rule far above its baseline, or an incident, from opening to closing; at most one open per zone, rule and incident.
 * Written by detect-spikes and detect-sources; read by fetch-advice, raise-alerts and the spike API. While it is open, window, baseline, threshold,
 * score, severity and peak are those of its strongest minute so far. Counts are of events.
 */
export const spikes = pgTable(
  "spikes",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    /** The end of the first minute that reached its threshold, or the earlier moment at which the detector found it. */
    openedAt: timestamp({ withTimezone: true }).notNull(),
    /** The end of the minute that completed the quiet quarter of an hour. */
    closedAt: timestamp({ withTimezone: true }),
    /** The end of the latest minute that was not quiet. */
    lastActiveAt: timestamp({ withTimezone: true }).notNull(),
    /** The end of the latest minute that was judged. */
    judgedThrough: timestamp({ withTimezone: true }).notNull(),
    /** The window's usual count at this time of day. */
    baseline: doublePrecision().notNull(),
    /** The count from which the window counts as a spike. */
    threshold: doublePrecision().notNull(),
    /** Deviations above the expected peak, in logarithms. */
    score: doublePrecision().notNull(),
    /** Highest count of the window. */
    peak: integer().notNull(),
    /** The window's present count. */
    windowCount: integer().notNull(),
    windowMinutes: integer().notNull(),
    zoneId: integer().notNull(),
    ruleId: text().notNull(),
    /** Distinguishes the incidents of a zone; empty for a rule. */
    incident: text().notNull().default(""),
    /** The fingerprint of a rule's alert that this incident goes on with; null if it has its own. */
    takesOver: text(),
    /**
     * The spike whose alert this rule's spike is part of: an incident whose attackers hold most of its events, or another rule with
     * the same requests. Null if it has its own.
     */
    memberOf: bigint({ mode: "number" }).references((): AnyPgColumn => spikes.id, { onDelete: "set null" }),
    severity: text({ enum: SPIKE_SEVERITIES }).notNull(),
    /**
     * `new-rule`: the rule was first seen within a day and its burst is small. It is less severe. `sources`: an incident,
     * which is attackers that the source series of a zone have found, under the rule id of `SOURCES_RULE`. `action-change`
     * and `silent-rule`: rules of a zone that changed, under the rule id of `changesRule`; such a spike is open for a person
     * to see, so it opens when it is found. `custom-condition`: a condition of a person, under the rule id of `conditionRule`.
     */
    kind: text({ enum: SPIKE_KINDS }).notNull(),
    /** Different addresses in the window, up to a limit; null if none is known. */
    addresses: integer(),
    /** The fewest addresses that send four fifths of the window's events; null if none is known. */
    mainSenders: integer(),
    /** The facts that decided the severity. */
    gradedBy: text({ enum: GRADINGS }),
    /** Stored while sources were in shadow mode: raises no alert. */
    isShadow: boolean().notNull().default(false),
    /** Found when events came late, after the fact: raises no alert by itself. Closed from the beginning. */
    isLate: boolean().notNull().default(false),
    /** Attackers and the reasons, for the kind `sources`. */
    sources: jsonb().$type<StoredSources>(),
    /** The attackers of an incident that a person has resolved, by name (`rules_per_ip=203.0.113.9`). */
    resolvedAttackers: text().array().notNull().default([]),
    /** Rules that changed, the first ones first, for the kinds of changes. */
    changes: jsonb().$type<readonly RuleChange[]>(),
    /** The condition as it was when it began to hold, for the kind `custom-condition`. */
    condition: jsonb().$type<CustomCondition>(),
    /**
     * A person's verdict. The hours of an attack are removed from the rule's history. Null until a person has marked
     * the spike.
     */
    mark: text({ enum: MARKS }),
    markedAt: timestamp({ withTimezone: true }),
    evidence: jsonb().$type<SpikeEvidence>().notNull(),
  },
  (t) => [
    uniqueIndex("spikes_open").on(t.zoneId, t.ruleId, t.incident).where(sql`closed_at is null`),
    index("spikes_opened").on(t.zoneId, t.openedAt),
    index("spikes_closed").on(t.closedAt),
    index("spikes_members").on(t.memberOf).where(sql`member_of is not null`),
    index("spikes_marked").on(t.zoneId, t.ruleId, t.openedAt).where(sql`mark is not null`),
    check("spikes_mark", sql`${isOneOf(t.mark, MARKS)} and ${t.markedAt} is not null or ${t.mark} is null`),
    check("spikes_late_closed", sql`not ${t.isLate} or ${t.closedAt} is not null`),
    check("spikes_close_after_open", sql`${t.closedAt} >= ${t.openedAt}`),
    check("spikes_window", sql`${isOneOf(t.windowMinutes, WINDOWS)} or ${t.kind} = 'custom-condition'`),
    check("spikes_severity", isOneOf(t.severity, SPIKE_SEVERITIES)),
    check("spikes_kind", isOneOf(t.kind, SPIKE_KINDS)),
    check("spikes_sources", sql`(${t.kind} = 'sources') = (${t.sources} is not null)`),
    check("spikes_changes", sql`(${IS_CHANGE}) = (${t.changes} is not null)`),
    check("spikes_condition", sql`(${t.kind} = 'custom-condition') = (${t.condition} is not null)`),
    check("spikes_graded_by", isOneOf(t.gradedBy, GRADINGS)),
  ],
);

/**
 * The verdicts on a spike, one row for each time. Written by judge-verdicts; read by raise-alerts and the alert's page.
 * Holds a sample request: retention, erasure and pseudonyms apply.
 */
export const verdicts = pgTable(
  "verdicts",
  {
    spikeId: bigint({ mode: "number" })
      .notNull()
      .references(() => spikes.id, { onDelete: "cascade" }),
    judgedAt: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    look: text({ enum: VERDICT_TIMES }).notNull(),
    said: text({ enum: VERDICTS }).notNull(),
    verdict: jsonb().$type<StoredVerdict>().notNull(),
    /** Since when a message waits for a newer verdict than this. */
    askedAt: timestamp({ withTimezone: true }),
  },
  (t) => [
    primaryKey({ columns: [t.spikeId, t.look] }),
    index("verdicts_judged").on(t.zoneId, t.judgedAt),
    index("verdicts_asked").on(t.spikeId).where(sql`${t.askedAt} is not null`),
    check("verdicts_look", isOneOf(t.look, VERDICT_TIMES)),
    check("verdicts_said", isOneOf(t.said, VERDICTS)),
  ],
);

/**
 * Custom conditions that a person has added, beside those of the configuration file. Written by `longwatch conditions` and the
 * API; read by judge-conditions. A row never changes. A filter may be an address: an erasure covers it.
 */
export const customConditions = pgTable("custom_conditions", {
  id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
  createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  name: text().notNull().unique(),
  condition: jsonb().$type<CustomCondition>().notNull(),
  createdBy: text().notNull(),
});

/**
 * How far the custom conditions of a zone are counted. Written and locked by judge-conditions: whoever has the lock counts and
 * judges the zone.
 */
export const conditionZones = pgTable("condition_zones", {
  zoneId: integer().primaryKey(),
  /** The last number of `changed_minutes` that is counted. */
  seq: bigint({ mode: "number" }).notNull(),
  /** The names of the counts, as `countsOf` returns them, whose latest windows are complete. */
  counted: text().array().notNull().default([]),
});

/**
 * The count of one custom condition in one minute. judge-conditions writes it, replaces it if events of the minute change, and removes
 * it after the condition's window and a day. Holds hashes of values, which an erasure deletes.
 */
export const conditionMinutes = pgTable(
  "condition_minutes",
  {
    minute: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    count: integer().notNull(),
    /** The name of the counts. */
    counts: text().notNull(),
    /** Hashes of the different values; null if events are counted. */
    values: bigint({ mode: "number" }).array(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.counts, t.minute] })],
);
