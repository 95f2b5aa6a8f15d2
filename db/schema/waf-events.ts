import { check, index, integer, pgTable, primaryKey, smallint, text, timestamp } from "drizzle-orm/pg-core";
import { EVENT_ROUTES } from "#model/kinds.ts";
import { bytewiseText } from "../postgres/column-types.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

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
