import { date, integer, jsonb, pgTable, primaryKey, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

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
