import { sql } from "drizzle-orm";
import { check, date, index, integer, pgTable, primaryKey, timestamp, uuid } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/** The columns of a block, which may have to be held first. */
export const blockColumns = {
  firstAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
  lastAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
  zoneId: integer().notNull(),
  day: date({ mode: "string" }).notNull(),
  entryCount: integer().notNull(),
  blockId: uuid().notNull().defaultRandom(),
  /** Eight bytes of hash per entry, packed. A later pass reads from it which records are already kept. */
  logIdHashes: bytea().notNull(),
  block: bytea().notNull(),
};

/**
 * Entries exactly as received, many per block, zstd-compressed. Written by walk-days and poll-events, merged when
 * a day closes; read by the archive API and by later passes. Partitioned by day, with a retention of its own.
 */
export const rawBlocks = pgTable("raw_blocks", blockColumns, (t) => [
  primaryKey({ columns: [t.zoneId, t.day, t.blockId] }),
  index("raw_blocks_times").on(t.zoneId, t.firstAt, t.lastAt),
  check("raw_blocks_hash_per_entry", sql`octet_length(${t.logIdHashes}) = 8 * ${t.entryCount}`),
  check("raw_blocks_time_order", sql`${t.firstAt} <= ${t.lastAt}`),
]);
