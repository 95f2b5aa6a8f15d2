import { index, pgTable, primaryKey, timestamp } from "drizzle-orm/pg-core";
import { blockColumns } from "./archive.ts";

/**
 * Raw blocks that wait for the pseudonym key; an erasure may cover their records, and cannot be judged without the key.
 * Written by walk-days, poll-events and repair-window. judge-held moves each row to raw_blocks once the key is
 * available and no event in the block's time span is held any more.
 */
export const heldBlocks = pgTable(
  "held_blocks",
  {
    ...blockColumns,
    heldAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.day, t.blockId] }),
    index("held_blocks_times").on(t.zoneId, t.firstAt, t.lastAt),
  ],
);
