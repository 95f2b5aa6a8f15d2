import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
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
import {
  type EvidenceDimension,
  GRADINGS,
  MARKS,
  SPIKE_KINDS,
  SPIKE_SEVERITIES,
  WINDOWS,
} from "#model/kinds.ts";
import type { StoredSources } from "#model/stored-sources.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

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

/**
 * A rule far above its baseline, from opening to closing; at most one open per zone and rule. Written by
 * detect-spikes; read by fetch-advice, raise-alerts and the spike API. While it is open, window, baseline, threshold,
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
    /** The highest number of other rules of the zone that were spiking in the same minutes. */
    companions: integer().notNull().default(0),
    zoneId: integer().notNull(),
    ruleId: text().notNull(),
    severity: text({ enum: SPIKE_SEVERITIES }).notNull(),
    /**
     * `new-rule`: the rule was first seen within a day and its burst is small. It is less severe. `sources`: the source
     * series of a zone, under the rule id of `SOURCES_RULE`.
     */
    kind: text({ enum: SPIKE_KINDS }).notNull(),
    /** Different addresses in the window, up to a limit; null while nothing depends on them. */
    addresses: integer(),
    /** The facts that decided the severity. */
    gradedBy: text({ enum: GRADINGS }),
    /** Stored while sources were in shadow mode: raises no alert. */
    isShadow: boolean().notNull().default(false),
    /** For the kind `sources`: the series that fire, and why. */
    sources: jsonb().$type<StoredSources>(),
    /**
     * A person's verdict. The hours of an attack are removed from the rule's history. Null until a person has marked
     * the spike.
     */
    mark: text({ enum: MARKS }),
    markedAt: timestamp({ withTimezone: true }),
    evidence: jsonb().$type<SpikeEvidence>().notNull(),
  },
  (t) => [
    uniqueIndex("spikes_open").on(t.zoneId, t.ruleId).where(sql`closed_at is null`),
    index("spikes_opened").on(t.zoneId, t.openedAt),
    index("spikes_closed").on(t.closedAt),
    index("spikes_marked").on(t.zoneId, t.ruleId, t.openedAt).where(sql`mark is not null`),
    check("spikes_mark", sql`${isOneOf(t.mark, MARKS)} and ${t.markedAt} is not null or ${t.mark} is null`),
    check("spikes_close_after_open", sql`${t.closedAt} >= ${t.openedAt}`),
    check("spikes_window", isOneOf(t.windowMinutes, WINDOWS)),
    check("spikes_severity", isOneOf(t.severity, SPIKE_SEVERITIES)),
    check("spikes_kind", isOneOf(t.kind, SPIKE_KINDS)),
    check("spikes_sources", sql`(${t.kind} = 'sources') = (${t.sources} is not null)`),
    check("spikes_graded_by", isOneOf(t.gradedBy, GRADINGS)),
  ],
);
