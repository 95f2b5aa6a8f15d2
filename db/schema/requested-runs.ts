import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { RUN_KINDS } from "#model/kinds.ts";
import { isOneOf } from "../postgres/is-one-of.ts";

/**
 * Backfills and verifications that a person started over the API. Written by the API, by run-requested and by
 * verify-archive. A row without an end is unfinished work.
 */
export const requestedRuns = pgTable(
  "requested_runs",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    fromAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    toAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    requestedAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    /** When it was first worked on; null until then. */
    startedAt: timestamp({ withTimezone: true, precision: 3 }),
    endedAt: timestamp({ withTimezone: true, precision: 3 }),
    zoneId: integer().notNull(),
    /** How often it was begun: again after a kill, a restart or a failure that may pass. */
    starts: integer().notNull().default(0),
    /** Percent. */
    percent: integer().notNull().default(0),
    /** A verification also compares a few hours id by id. */
    withIds: boolean().notNull().default(false),
    kind: text({ enum: RUN_KINDS }).notNull(),
    requestedBy: text().notNull(),
    /** The current step, in words for people. */
    step: text(),
    /** Reason why the last start failed; for people. It can hold text of the platform. */
    problem: text(),
    /** Null until it has ended well. Can hold rule ids and log ids. */
    result: jsonb(),
  },
  (t) => [
    uniqueIndex("requested_runs_unfinished")
      .on(t.kind, t.zoneId, t.fromAt, t.toAt, t.withIds)
      .where(sql`${t.endedAt} is null`),
    index("requested_runs_zone").on(t.zoneId, t.id),
    check("requested_runs_kind", isOneOf(t.kind, RUN_KINDS)),
    check("requested_runs_span", sql`${t.fromAt} < ${t.toAt}`),
  ],
);
