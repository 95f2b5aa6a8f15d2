import { sql } from "drizzle-orm";
import { bigint, check, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { BACKFILL_ROUTES } from "#model/kinds.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

/** Progress of a requested backfill, so that it resumes where it stopped. Only `longwatch backfill` uses it. */
export const backfills = pgTable(
  "backfills",
  {
    fromAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    toAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    startedAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** Every event before this time is stored. */
    doneThrough: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    endedAt: timestamp({ withTimezone: true, precision: 3 }),
    /** Events that were not stored before. */
    newEvents: bigint({ mode: "number" }).notNull().default(0),
    zoneId: integer().notNull(),
    route: text({ enum: BACKFILL_ROUTES }).notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.fromAt, t.toAt, t.route] }),
    check("backfills_route", isOneOf(t.route, BACKFILL_ROUTES)),
    check("backfills_span", sql`${t.fromAt} < ${t.toAt}`),
  ],
);
