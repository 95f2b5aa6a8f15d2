import { date, index, integer, pgTable, primaryKey, timestamp, uuid } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/**
 * Raw blocks with records that an erasure may cover and that could not be judged, because the pseudonym key was
 * missing. The columns are those of raw_blocks. Written by walk-days, poll-events and repair-window. judge-held moves
 * each row to raw_blocks once the key is available and no event in the block's time span is held any more.
 */
export const heldBlocks = pgTable(
  "held_blocks",
  {
    firstAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    lastAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    heldAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    zoneId: integer().notNull(),
    day: date({ mode: "string" }).notNull(),
    entryCount: integer().notNull(),
    blockId: uuid().notNull().defaultRandom(),
    logIdHashes: bytea().notNull(),
    block: bytea().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.day, t.blockId] }),
    index("held_blocks_times").on(t.zoneId, t.firstAt, t.lastAt),
  ],
);
