import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { bytewiseText } from "../postgres/column-types.ts";

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
