import { check, pgTable, primaryKey, timestamp } from "drizzle-orm/pg-core";
import { EVENT_ROUTES } from "#model/kinds.ts";
import { isOneOf } from "../postgres/terms.ts";
import { eventColumns } from "./events.ts";

/**
 * Events that wait for the pseudonym key; an erasure may cover them, and cannot be judged without the key. Written by
 * walk-days, poll-events and repair-window. judge-held moves each row to waf_events once the key is available.
 * Nothing else reads the table. Not partitioned, because the table is empty while the key is available.
 */
export const heldEvents = pgTable(
  "held_events",
  {
    ...eventColumns,
    heldAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.occurredAt, t.logId] }),
    check("held_events_route", isOneOf(t.route, EVENT_ROUTES)),
  ],
);
