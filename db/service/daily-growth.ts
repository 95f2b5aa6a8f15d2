import { getTableName, sql } from "drizzle-orm";
import { sumValidBytes } from "../archive/archive-files.ts";
import type { Queryable } from "../client.ts";
import { rawBlocks } from "../schema/raw-blocks.ts";
import { wafEvents } from "../schema/waf-events.ts";

/** How much the data of the server grows per day, in bytes. */
export interface DailyGrowth {
  /** The largest of the last days: events and records, with their indexes. */
  readonly dayBytes: number;
  /** Bytes that the server's write-ahead log may still add before it reuses old files. */
  readonly logBytes: number;
}

const DAYS = 4;

/** Returns the growth. The role must be able to list the write-ahead log's files. */
export async function readDailyGrowth(db: Queryable, nowMs: number): Promise<DailyGrowth> {
  const { rows } = await db.execute<{ logBytes: number }>(sql`
    select greatest(pg_size_bytes(current_setting('max_wal_size')) - (select sum(size) from pg_ls_waldir()), 0)::float8
      as "logBytes"`);
  return { dayBytes: await readDayBytes(db, nowMs), logBytes: rows[0]?.logBytes ?? 0 };
}

/** Returns `dayBytes`, computed from the partitions of the last days, so that no history of sizes is needed. */
export async function readDayBytes(db: Queryable, nowMs: number): Promise<number> {
  const days = Array.from({ length: DAYS }, (_, n) =>
    new Date(nowMs - n * 86_400_000).toISOString().slice(0, 10).replaceAll("-", ""),
  );
  const { rows } = await db.execute<{ bytes: number }>(sql`
    select coalesce((select max(bytes) from (
        select sum(pg_total_relation_size(c.oid)) as bytes
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent in (${getTableName(wafEvents)}::regclass, ${getTableName(rawBlocks)}::regclass)
          and right(c.relname, 8) = any (${sql.param(days)}::text[])
        group by right(c.relname, 8)) d), 0)::float8 as "bytes"`);
  return rows[0]?.bytes ?? 0;
}

/** Sizes of everything that is stored, in bytes. */
export interface StoredBytes {
  readonly databaseBytes: number;
  /** The records in the database, which are a part of it. */
  readonly recordBytes: number;
  readonly archiveBytes: number;
}

export async function readStoredBytes(db: Queryable): Promise<StoredBytes> {
  const { rows } = await db.execute<{ databaseBytes: number; recordBytes: number }>(sql`
    select pg_database_size(current_database())::float8 as "databaseBytes",
      (select coalesce(sum(pg_total_relation_size(i.inhrelid)), 0) from pg_inherits i
        where i.inhparent = ${getTableName(rawBlocks)}::regclass)::float8 as "recordBytes"`);
  const { databaseBytes = 0, recordBytes = 0 } = rows[0] ?? {};
  return { databaseBytes, recordBytes, archiveBytes: await sumValidBytes(db) };
}
