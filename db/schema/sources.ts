/** Tables of the usual counts of sources, the usual values of zones, and known sources. */
import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  date,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
} from "drizzle-orm/pg-core";
import { KNOWN_KINDS, USUAL_DIMENSIONS } from "#model/kinds.ts";
import { bytewiseText, isOneOf } from "../postgres/terms.ts";

/**
 * One clock hour of one zone for the source series: the largest count of each series. The windows of 3, 15 and 60 minutes
 * end in the hour: five times three numbers in the order of `SOURCE_KINDS`. Holds no address. Written
 * by detect-sources from the events; roll-up-trends marks an hour that it counts again.
 */
export const sourceHours = pgTable(
  "source_hours",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    /** Raised whenever an event of the hour arrives later, so that a recount that has missed it is seen. */
    marks: integer().notNull().default(0),
    isStale: boolean().notNull().default(true),
    /** The fingerprint of the known sources that were left out. An hour keeps it when the list changes. */
    known: text().notNull().default(""),
    /** Null until the hour is counted. */
    peaks: integer().array(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.startsAt] }),
    index("source_hours_stale").on(t.zoneId, t.startsAt).where(sql`is_stale`),
    check("source_hours_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
    check("source_hours_peaks", sql`cardinality(${t.peaks}) = 15`),
  ],
);

/**
 * The most rules that an address triggered on a UTC day; in windows of 3, 15 and 60 minutes, from five rules in an hour
 * on. The second largest of a week is usual for the address. Holds addresses: kept for eight days, erased with its
 * person. Written by detect-sources.
 */
export const sourceUsual = pgTable(
  "source_usual",
  {
    zoneId: integer().notNull(),
    day: date().notNull(),
    peak3: integer().notNull(),
    peak15: integer().notNull(),
    peak60: integer().notNull(),
    /** The series count an IPv6 network of 64 bits as one address. */
    address: bytewiseText().notNull(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.day, t.address] })],
);

/**
 * The networks, JA4 fingerprints and path templates that are usual in a zone, and since when. A verdict counts only values
 * that were usual before its alert began, so an attack cannot make itself usual. Written by learn-usual.
 */
export const zoneUsual = pgTable(
  "zone_usual",
  {
    /** The moment at which the value had been seen often enough. */
    since: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    dimension: text({ enum: USUAL_DIMENSIONS }).notNull(),
    value: bytewiseText().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.dimension, t.value] }),
    check("zone_usual_dimension", isOneOf(t.dimension, USUAL_DIMENSIONS)),
  ],
);

/**
 * The minutes of a zone's hour that the detectors have judged. An hour is judged if each of its minutes was judged
 * with all its stored events; `judged` in judged-hours.ts is the condition. Written by detect-spikes, detect-sources and
 * judge-late. It is no part of `coverage_windows`, because storing a page locks rows of that table.
 */
export const judgedHours = pgTable(
  "judged_hours",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    /** The minutes that the detector of rules has judged one after the other, [from, through). */
    rulesFrom: timestamp({ withTimezone: true }),
    rulesThrough: timestamp({ withTimezone: true }),
    /** True if a tick judged minutes of the hour when they were new. Hours before the zone's first such hour are history. */
    isLive: boolean().notNull().default(false),
    judgedAt: timestamp({ withTimezone: true }),
    zoneId: integer().notNull(),
    /** The number of events that the hour had when its sources were judged; null before that. */
    events: integer(),
    /** The settings, as a short fingerprint, or `TOO_LITTLE_HISTORY`. */
    judgedWith: text(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.startsAt] }),
    check("judged_hours_whole_hour", sql`extract(epoch from ${t.startsAt}) % 3600 = 0`),
    check("judged_hours_judged", sql`(${t.judgedAt} is null) = (${t.judgedWith} is null)`),
  ],
);

/**
 * Sources that a person has named as expected, beside those of the configuration file. Written by `longwatch known` and
 * the API; read by detect-sources, which leaves their events out of the source series. Patterns may be addresses: an
 * erasure covers them.
 */
export const knownSources = pgTable(
  "known_sources",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Null: no end. */
    expiresAt: timestamp({ withTimezone: true }),
    /** Null: every zone. */
    zoneId: integer(),
    kind: text({ enum: KNOWN_KINDS }).notNull(),
    pattern: text().notNull(),
    reason: text().notNull(),
    createdBy: text().notNull(),
  },
  (t) => [check("known_sources_kind", isOneOf(t.kind, KNOWN_KINDS))],
);
