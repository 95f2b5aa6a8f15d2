/** The files of the archive, and the records that are not archived yet. */
import { sql } from "drizzle-orm";
import {
  bigint,
  check,
  date,
  index,
  integer,
  numeric,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";
import { ARCHIVE_KINDS } from "#model/kinds.ts";
import { bytea, isOneOf } from "../postgres/terms.ts";

/**
 * The manifest of the archive: one row per file. A zone's day whose events file is in the manifest and not retired is
 * an archive day. Searches then read the file, even while Postgres still has the day's events. Written by archive-days,
 * by `longwatch archive restore` and by whatever rewrites a day; read by every search.
 */
export const archiveFiles = pgTable(
  "archive_files",
  {
    writtenAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** When the file was last compared with its hash. */
    checkedAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Null while the file is only in the archive folder. */
    uploadedAt: timestamp({ withTimezone: true }),
    /** When the file was replaced or given up; null while it is valid. The file is deleted some time later. */
    retiredAt: timestamp({ withTimezone: true }),
    /** When a search found the file missing or damaged; null if the last check was good. */
    damagedAt: timestamp({ withTimezone: true }),
    /** Times of the first and the last event; null in a file without rows. */
    firstAt: timestamp({ withTimezone: true, precision: 3 }),
    lastAt: timestamp({ withTimezone: true, precision: 3 }),
    bytes: bigint({ mode: "number" }).notNull(),
    zoneId: integer().notNull(),
    day: date({ mode: "string" }).notNull(),
    rows: integer().notNull(),
    /** Version of the file's columns: `src/model/archive-layout.ts`. */
    format: integer().notNull(),
    /** The events of each hour of the day. Row n of a records file belongs to row n of its events file. */
    hours: integer().array().notNull(),
    /** The sum that the file was verified with, over its rows; does not depend on their order. */
    sum: numeric().notNull(),
    kind: text({ enum: ARCHIVE_KINDS }).notNull(),
    /** The problem of a damaged file. */
    damage: text(),
    /** Lower-case hex. */
    sha256: text().notNull(),
    /** Relative to the archive folder, with `/`; also the key in the bucket. */
    path: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.zoneId, t.day, t.kind, t.sha256] }),
    uniqueIndex("archive_files_valid").on(t.zoneId, t.day, t.kind).where(sql`retired_at is null`),
    index("archive_files_day").on(t.day),
    check("archive_files_kind", isOneOf(t.kind, ARCHIVE_KINDS)),
    check("archive_files_sha256", sql`${t.sha256} ~ '^[0-9a-f]{64}$'`),
    check("archive_files_hours", sql`cardinality(${t.hours}) = 24`),
    check(
      "archive_files_times",
      sql`(${t.rows} = 0) = (${t.firstAt} is null) and ${t.firstAt} <= ${t.lastAt}`,
    ),
  ],
);

/** The columns of a block, which may have to be held first. */
export const blockColumns = {
  firstAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
  lastAt: timestamp({ withTimezone: true, precision: 3 }).notNull(),
  zoneId: integer().notNull(),
  day: date({ mode: "string" }).notNull(),
  entryCount: integer().notNull(),
  blockId: uuid().notNull().defaultRandom(),
  /** Eight bytes of hash per entry, packed. A later pass reads from it which records are already kept. */
  logIdHashes: bytea().notNull(),
  block: bytea().notNull(),
};

/**
 * Entries exactly as received, many per block, zstd-compressed. Written by walk-days and poll-events, merged when
 * a day closes; read by the archive API and by later passes. Partitioned by day, with a retention of its own.
 */
export const rawBlocks = pgTable("raw_blocks", blockColumns, (t) => [
  primaryKey({ columns: [t.zoneId, t.day, t.blockId] }),
  index("raw_blocks_times").on(t.zoneId, t.firstAt, t.lastAt),
  check("raw_blocks_hash_per_entry", sql`octet_length(${t.logIdHashes}) = 8 * ${t.entryCount}`),
  check("raw_blocks_time_order", sql`${t.firstAt} <= ${t.lastAt}`),
]);
