/** Tables that the replicas share: leases, request budgets, requested runs and secrets. */

import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  doublePrecision,
  index,
  integer,
  jsonb,
  pgTable,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { RUN_KINDS } from "#model/kinds.ts";
import type { TickName, TickReport } from "#model/schedule.ts";
import { bytea, isOneOf } from "../postgres/terms.ts";

/**
 * Single ownership and due ticks, by name. Written and read by the queries in leases.ts only. `fence` increases with
 * every change of owner, and with every claim of a tick. It never decreases: rows are released, not deleted.
 */
export const leases = pgTable("leases", {
  fence: bigint({ mode: "number" }).notNull().default(0),
  /** Null while no process holds the lease. */
  expiresAt: timestamp({ withTimezone: true }),
  /** The time of a tick's next run, by the clock of the process that claimed the last one. */
  dueAt: timestamp({ withTimezone: true }),
  name: text().primaryKey(),
  holder: text(),
});

/**
 * One row per process of the service. Each process writes its own row at its start, every few seconds and at its stop.
 * Read by the status. manage-partitions deletes rows that are old. All times are Postgres's.
 */
export const replicas = pgTable("replicas", {
  startedAt: timestamp({ withTimezone: true, precision: 3 }).notNull().defaultNow(),
  seenAt: timestamp({ withTimezone: true, precision: 3 }).notNull().defaultNow(),
  /** Null while the process runs, and forever if it was killed. */
  stoppedAt: timestamp({ withTimezone: true, precision: 3 }),
  /** Unique within `host` and its process namespace only. */
  pid: integer().notNull(),
  /** Made at the start of the process. */
  id: text().primaryKey(),
  host: text().notNull(),
  version: text().notNull(),
  roles: text().array().notNull(),
  zoneIds: integer().array().notNull(),
  /** The ticks that the process has, with the last run of each job in it. */
  ticks: jsonb().$type<Partial<Record<TickName, TickReport>>>().notNull().default({}),
});

/**
 * How many requests all replicas together may send now; a token bucket, written and read before each request. A new
 * bucket is full. The other rows are of zones that the platform refused: such a row has a zone and a pause, and no use
 * for its tokens.
 */
export const requestBudgets = pgTable("request_budgets", {
  /** When `tokens` was last computed. */
  refilledAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
  /** The platform asked for a pause until then. */
  pausedUntil: timestamp({ withTimezone: true, precision: 3 }),
  /** Since when the platform has refused the zone; null after its next answer, and for the bucket. */
  refusedSince: timestamp({ withTimezone: true, precision: 3 }),
  tokens: doublePrecision().notNull(),
  /** Null for the bucket. */
  zoneId: integer(),
  name: text().primaryKey(),
});

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

/**
 * Random secrets shared by all replicas; one signs page cursors, one is the key of the hashes of matched texts.
 * Written by the first replica that reads a secret, read by http and ingest.
 */
export const serverSecrets = pgTable("server_secrets", {
  createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  name: text().primaryKey(),
  secret: bytea().notNull(),
});
