import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  text,
  timestamp,
  unique,
} from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/** What an erasure changed: rows, and records inside raw blocks. */
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
 * One erasure of an address or a network, and the tombstone it leaves: by keyed hash only, so that the row names nobody.
 * Written by `longwatch erase`; read in every transaction of ingest, which lets nothing of it come back, and by
 * erase-leftovers.
 */
export const erasures = pgTable(
  "erasures",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    requestedAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** Events up to here are covered; later ones are new data. */
    untilAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** When everything that was stored had been gone through; null while it is unfinished. */
    endedAt: timestamp({ withTimezone: true, precision: 3 }),
    /** Null: of every zone. */
    zoneId: integer(),
    /** 4 or 6. */
    family: integer().notNull(),
    /** Length of the network's prefix; 32 or 128 of a single address. */
    prefix: integer().notNull(),
    includeMasked: boolean().notNull(),
    keyId: text().notNull(),
    /** Of the network, by the key that `keyId` names. */
    hash: bytea().notNull(),
    /** Of the masked form that stands for it, such as `203.0.113.*`; null where none is covered. */
    maskedHash: bytea(),
    maskedPrefix: integer(),
    counts: jsonb().$type<ErasedCounts>().notNull(),
  },
  (t) => [
    unique("erasures_once").on(t.zoneId, t.keyId, t.hash, t.includeMasked).nullsNotDistinct(),
    index("erasures_until").on(t.untilAt),
    check("erasures_family", sql`${t.family} in (4, 6)`),
  ],
);
