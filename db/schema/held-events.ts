import { check, integer, pgTable, primaryKey, smallint, text, timestamp } from "drizzle-orm/pg-core";
import { EVENT_ROUTES } from "#model/kinds.ts";
import { bytewiseText } from "../postgres/column-types.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

/**
 * Events that an erasure may cover and that could not be judged, because the pseudonym key was missing. Written by
 * walk-days, poll-events and repair-window. judge-held moves each row to waf_events once the key is available.
 * Nothing else reads the table. Not partitioned, because the table is empty while the key is available.
 */
export const heldEvents = pgTable(
  "held_events",
  {
    occurredAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    zoneId: integer().notNull(),
    logId: bytewiseText().notNull(),
    /** The route that showed the event first. */
    route: text({ enum: EVENT_ROUTES }).notNull(),
    feature: text(),
    ruleId: text(),
    ip: text(),
    ja4: text(),
    ua: text(),
    url: text(),
    asn: text(),
    country: text(),
    action: text(),
    message: text(),
    method: text(),
    requestId: text(),
    matchedKey: integer(),
    facts: smallint(),
    heldAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.occurredAt, t.logId] }),
    check("held_events_route", isOneOf(t.route, EVENT_ROUTES)),
  ],
);
