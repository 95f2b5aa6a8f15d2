/** Erasures and pseudonyms. */

import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  date,
  index,
  integer,
  jsonb,
  pgTable,
  text,
  timestamp,
  unique,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { ADDRESS_FAMILIES } from "#model/kinds.ts";
import { bytea, isOneOf } from "../postgres/terms.ts";

/** Counts of an erasure's changes: rows, and records in raw blocks. */
export interface ErasedCounts {
  readonly events: number;
  readonly records: number;
  readonly quarantined: number;
  readonly spikes: number;
  readonly alerts: number;
  readonly notifications: number;
  readonly advice: number;
  readonly silences: number;
}

/**
 * One erasure of an address or a network, and its tombstone. The address is stored as a keyed hash only, so that the
 * row identifies no person. Written by `longwatch erase`; read by erase-leftovers and in every transaction of ingest,
 * which stores no covered data again.
 */
export const erasures = pgTable(
  "erasures",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    requestedAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** Events up to this time are covered; later ones are new data. */
    untilAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** When all stored data had been processed; null while the erasure is unfinished. */
    endedAt: timestamp({ withTimezone: true, precision: 3 }),
    /** Null: every zone. */
    zoneId: integer(),
    /** IP version, 4 or 6. */
    family: integer().notNull(),
    /** Length of the network's prefix; 32 or 128 for a single address. */
    prefix: integer().notNull(),
    includeMasked: boolean().notNull(),
    keyId: text().notNull(),
    /** Hash of the network, made with the key that `keyId` identifies. */
    hash: bytea().notNull(),
    /** Hash of the network's masked form, such as `203.0.113.*`; null if no masked form is covered. */
    maskedHash: bytea(),
    maskedPrefix: integer(),
    counts: jsonb().$type<ErasedCounts>().notNull(),
  },
  (t) => [
    unique("erasures_once").on(t.zoneId, t.keyId, t.hash, t.includeMasked).nullsNotDistinct(),
    index("erasures_until").on(t.untilAt),
    check("erasures_family", isOneOf(t.family, ADDRESS_FAMILIES)),
  ],
);

/**
 * The fingerprints of the keys for pseudonyms and tombstones. The keys themselves are never in the database. One
 * replica registers the key, the others compare theirs with it. Written by `longwatch privacy rotate-key` and at the
 * first use.
 */
export const pseudonymKeys = pgTable(
  "pseudonym_keys",
  {
    adoptedAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Null while the key is in use. */
    retiredAt: timestamp({ withTimezone: true }),
    keyId: text().primaryKey(),
    /** When a running process last found that it lacks the key in use, with that process's explanation; null: never. */
    missingAt: timestamp({ withTimezone: true }),
    missingBecause: text(),
  },
  () => [uniqueIndex("pseudonym_keys_current").on(sql`(true)`).where(sql`retired_at is null`)],
);

/**
 * Days whose events and alerts hold no full address, so that they are not read again. Kept for good, because an open
 * alert keeps its spike. Only pseudonymise-ips writes it.
 */
export const pseudonymisedDays = pgTable("pseudonymised_days", {
  doneAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  events: bigint({ mode: "number" }).notNull(),
  day: date({ mode: "string" }).primaryKey(),
  keyId: text().notNull(),
});
