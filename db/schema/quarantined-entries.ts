import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  date,
  index,
  integer,
  pgTable,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { EVENT_ROUTES } from "#model/kinds.ts";
import { bytea } from "../postgres/column-types.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

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
