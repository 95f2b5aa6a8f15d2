/** Events and how the platform changed them later. */

import { sql } from "drizzle-orm";
import {
  bigserial,
  check,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
} from "drizzle-orm/pg-core";
import { EVENT_ROUTES } from "#model/kinds.ts";
import { bytewiseText, isOneOf } from "../postgres/terms.ts";

/** The columns of an event, which may have to be held first. */
export const eventColumns = {
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
  /** From `method` on: the facts of the event's request, as `RequestFacts` describes them, read when its record arrives. */
  method: text(),
  requestId: text(),
  matchedKey: integer(),
  /** Bits of `packFacts`. */
  facts: smallint(),
};

/**
 * One WAF event, once. Written by poll-events, walk-days and repair-window; read by roll-up-trends,
 * reconcile-counts, detect-spikes (evidence) and the archive API. Partitioned by UTC day of occurred_at.
 * In every nullable column null is "not known yet" and '' is "known to be empty"; a merge fills nulls only.
 * The columns up to `message` are in this order so that no row carries alignment padding.
 */
export const wafEvents = pgTable("waf_events", eventColumns, (t) => [
  primaryKey({ columns: [t.zoneId, t.occurredAt, t.logId] }),
  index("waf_events_rule_time").on(t.zoneId, t.ruleId, t.occurredAt),
  index("waf_events_time_range").using("brin", t.occurredAt),
  check("waf_events_route", isOneOf(t.route, EVENT_ROUTES)),
]);

/**
 * A second time under which the platform has shown an event. The event is stored once, at `kept_at`. Written by
 * reconcile-counts and seal-windows; read by every writer of events, so that the event is not stored again. Its record
 * may be kept under either time, so an alias is kept as long as raw_blocks has one of the two days.
 */
export const eventAliases = pgTable(
  "event_aliases",
  {
    otherAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    keptAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    notedAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    zoneId: integer().notNull(),
    logId: bytewiseText().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.otherAt, t.logId] }),
    // Finds the records of a stored event.
    index("event_aliases_kept").on(t.zoneId, t.keptAt, t.logId),
  ],
);

/**
 * A changed value of a stored event, its withdrawal, or its removal by an operator. `field` is the column, `withdrawn`, or
 * `removed` with the reason in `after`.
 * Written by every writer of events, by poll-events and by `coverage withdraw`; read by poll-events, seal-windows and the
 * event's page. While `accepted_at` is null the look is not confirmed: the stored value stays, and
 * a look that shows the stored value or the event deletes the row.
 */
export const eventRevisions = pgTable(
  "event_revisions",
  {
    occurredAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** When a look first showed the other value, or first lacked the event. */
    seenAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    acceptedAt: timestamp({ withTimezone: true, precision: 3 }),
    zoneId: integer().notNull(),
    logId: bytewiseText().notNull(),
    field: text().notNull(),
    /** Null for `withdrawn`. */
    before: text(),
    after: text(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.occurredAt, t.logId, t.field, t.seenAt] }),
    index("event_revisions_open").on(t.zoneId, t.occurredAt).where(sql`accepted_at is null`),
    check("event_revisions_values", sql`${t.field} = 'withdrawn' or ${t.after} is not null`),
  ],
);

/**
 * One statement that changed or removed stored events of an hour. Written by a trigger, in the transaction of the change; read
 * by searches, which copy an hour anew after a change; removed by manage-partitions with the day's partition. Nothing is
 * updated, so writers never wait for each other here.
 */
export const hourChanges = pgTable(
  "hour_changes",
  {
    startsAt: timestamp({ withTimezone: true }).notNull(),
    changedAt: timestamp({ withTimezone: true }).notNull().default(sql`clock_timestamp()`),
    id: bigserial({ mode: "number" }).notNull(),
    zoneId: integer().notNull(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.startsAt, t.id] })],
);
