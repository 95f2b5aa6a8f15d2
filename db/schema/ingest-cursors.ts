import {
  bigint,
  boolean,
  check,
  date,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
} from "drizzle-orm/pg-core";
import { PASS_RESULTS } from "#model/kinds.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

/**
 * State of the list pass over one zone's day. Written by walk-days in the transaction of each page, by the holder of
 * the fence only; read by walk-days (resume) and seal-windows (was there a quiet full pass).
 */
export const ingestCursors = pgTable(
  "ingest_cursors",
  {
    fence: bigint({ mode: "number" }).notNull(),
    startedAt: timestamp({ withTimezone: true }).notNull(),
    /** Start of the latest full pass that reached the end. */
    fullPassStartedAt: timestamp({ withTimezone: true }),
    /** Start of the latest full pass that reached the end and found nothing new. */
    quietPassStartedAt: timestamp({ withTimezone: true }),
    zoneId: integer().notNull(),
    day: date({ mode: "string" }).notNull(),
    pass: integer().notNull().default(1),
    pagesSeen: integer().notNull().default(0),
    newEntries: integer().notNull().default(0),
    /** Token of the next page of the pass; null before the first page and after the last. */
    continuationToken: text(),
    /**
     * Token of the first of the list's last pages, where the next short pass begins. Null while the latest ended pass has
     * not shown that the list comes oldest first, and while these pages are the whole list.
     */
    tailToken: text(),
    /** The pass began at `tailToken`. It ends as a short pass, also after another process has resumed it. */
    beganAtTail: boolean().notNull().default(false),
    /** Null while the pass runs. */
    passResult: text({ enum: PASS_RESULTS }),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.day] }),
    check("ingest_cursors_pass_result", isOneOf(t.passResult, PASS_RESULTS)),
  ],
);
