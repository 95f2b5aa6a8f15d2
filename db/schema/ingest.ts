/** The progress of reading events, and entries that could not be read. */

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
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { EVENT_ROUTES, PASS_RESULTS } from "#model/kinds.ts";
import { bytea, isOneOf } from "../postgres/terms.ts";

/**
 * State of the list pass over one zone's day. Written by walk-days in the transaction of each page, by the holder of
 * the fence only; read by walk-days (resume) and seal-windows (was there a full pass without new entries).
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

/**
 * The ledger of what the platform showed, page by page. Written by walk-days with the page's events; read by
 * walk-days (an unchanged page that was seen before costs no inserts) and seal-windows (evidence).
 */
export const pages = pgTable(
  "pages",
  {
    readAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Null on a page without entries. */
    firstAt: timestamp({ withTimezone: true, precision: 3 }),
    lastAt: timestamp({ withTimezone: true, precision: 3 }),
    zoneId: integer().notNull(),
    day: date({ mode: "string" }).notNull(),
    pass: integer().notNull(),
    page: integer().notNull(),
    entries: integer().notNull(),
    newEntries: integer().notNull(),
    hash: bytea().notNull(),
    /** Hash of the token that requested this page; null on a pass's first page. */
    tokenHash: bytea(),
    /**
     * Per hour (epoch ms of its start): events of the page that the previous page did not show, and the digest of
     * their log ids.
     */
    hours: jsonb().$type<readonly (readonly [startsAt: number, count: number, ids: string])[]>(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.day, t.pass, t.page] })],
);

/**
 * An entry that could not become an event, byte for byte. Written by walk-days, poll-events and repair-window, once
 * per zone and content however often a page is read; read by seal-windows and the coverage API.
 */
export const quarantinedEntries = pgTable(
  "quarantined_entries",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    receivedAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    zoneId: integer().notNull(),
    /** The UTC day of the request; null if the search route returned the entry. */
    day: date({ mode: "string" }),
    route: text({ enum: EVENT_ROUTES }).notNull(),
    reason: text().notNull(),
    raw: bytea().notNull(),
    rawHash: bytea().generatedAlwaysAs(sql`sha256(raw)`),
    /** True while the entry could not be checked for erased addresses, because the pseudonym key was missing. */
    isHeld: boolean().notNull().default(false),
  },
  (t) => [
    uniqueIndex("quarantined_entries_content").on(t.zoneId, t.rawHash),
    index("quarantined_entries_held").on(t.id).where(sql`is_held`),
    check("quarantined_entries_route", isOneOf(t.route, EVENT_ROUTES)),
  ],
);

/**
 * Minutes whose counts are stale. Written in the transaction that writes the events, deleted by roll-up-trends in the
 * transaction that counts them. A writer raises `marks` (on conflict do update) and never skips an existing row: it
 * must lock the row, or a roll-up that cannot see its events yet could delete the mark before they commit.
 */
export const dirtyBuckets = pgTable(
  "dirty_buckets",
  {
    minute: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    marks: integer().notNull().default(1),
    ruleId: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.ruleId, t.minute] }),
    check("dirty_buckets_whole_minute", sql`extract(epoch from ${t.minute}) % 60 = 0`),
  ],
);
