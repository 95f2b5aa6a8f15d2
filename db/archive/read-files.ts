/** Reads records and events out of files of the archive. */

import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { getTableName, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { storedColumns, toFileColumnSql } from "#model/archive-layout.ts";
import type { EventKey, ZoneEventKey } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import type { Duckdb } from "../duckdb/duckdb.ts";
import { epochMs } from "../postgres/terms.ts";
import { rawBlocks } from "../schema/archive.ts";
import { eventAliases, wafEvents } from "../schema/events.ts";
import { quote, readFile } from "./day-files.ts";

const b = alias(rawBlocks, "b");
const a = alias(eventAliases, "a");

/** A span within one UTC day (`yyyy-mm-dd`) of a zone, epoch ms, both ends included. */
interface RecordSpan {
  readonly zoneId: number;
  readonly day: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Lists the records of a block without the block itself. */
interface BlockDirectory {
  readonly zoneId: number;
  readonly day: string;
  readonly blockId: string;
  /** Changes when an entry is erased from the block. */
  readonly version: string;
  /** Eight bytes per entry, in the order of the entries. */
  readonly logIdHashes: Buffer;
}

/** Returns every block that may hold a record of one of the spans, each once, earliest first. */
export async function findRecordBlocks(
  db: Queryable,
  spans: readonly RecordSpan[],
): Promise<BlockDirectory[]> {
  if (spans.length === 0) return [];
  const column = <T>(read: (span: RecordSpan) => T) => sql.param(spans.map(read));
  const days = sql.param([...new Set(spans.map(({ day }) => day))]);
  // One index range per span along the key of the times. `offset 0` keeps the lateral from becoming a join over whole
  // days. The days are repeated for the planner: planning for the partition of every day would take longer than the
  // query.
  const found = await db.execute<BlockDirectory & Record<string, unknown>>(sql`
    select zone_id as "zoneId", day::text, block_id as "blockId", version, log_id_hashes as "logIdHashes" from (
      select distinct on (r.day, r.first_at, r.block_id) r.*
      from unnest(${column((s) => s.zoneId)}::integer[], ${column((s) => s.day)}::date[],
        ${column((s) => s.fromMs)}::float8[], ${column((s) => s.toMs)}::float8[]) as span(zone, day, from_ms, to_ms)
      cross join lateral (
        select ${b.zoneId}, ${b.day}, ${b.firstAt}, ${b.blockId}, ${b}.xmin::text as version, ${b.logIdHashes}
        from ${rawBlocks} ${b}
        where ${b.zoneId} = span.zone and ${b.day} = span.day and ${b.day} = any(${days}::date[])
          and ${b.firstAt} <= to_timestamp(span.to_ms / 1000) and ${b.lastAt} >= to_timestamp(span.from_ms / 1000)
        offset 0) r
      order by r.day, r.first_at, r.block_id) found
    order by day, first_at, block_id`);
  return found.rows;
}

/** Returns the blocks by id. A block that was merged into others meanwhile is missing. */
export async function readRecordBlocks(
  db: Queryable,
  wanted: readonly Pick<BlockDirectory, "zoneId" | "day" | "blockId">[],
): Promise<Map<string, Buffer>> {
  if (wanted.length === 0) return new Map();
  const days = sql.param([...new Set(wanted.map(({ day }) => day))]);
  const zones = sql.param([...new Set(wanted.map(({ zoneId }) => zoneId))]);
  const ids = sql.param(wanted.map(({ blockId }) => blockId));
  const found = await db
    .select({ blockId: b.blockId, block: b.block })
    .from(b)
    .where(
      sql`${b.zoneId} = any(${zones}::integer[]) and ${b.day} = any(${days}::date[]) and ${b.blockId} = any(${ids}::uuid[])`,
    );
  return new Map(found.map(({ blockId, block }) => [blockId, block]));
}

/** Returns the second times of these events, under which their records may be kept, with the events' positions. */
export async function readOtherTimes(
  db: Queryable,
  keys: readonly ZoneEventKey[],
): Promise<{ index: number; occurredAt: number }[]> {
  const { rows } = await db.execute<{ index: number; occurredAt: number }>(sql`
    select (given.position - 1)::integer as index, ${epochMs(a.otherAt)} as "occurredAt"
    from unnest(${sql.param(keys.map(({ occurredAt }) => new Date(occurredAt)))}::timestamptz[],
      ${sql.param(keys.map(({ logId }) => logId))}::text[], ${sql.param(keys.map(({ zoneId }) => zoneId))}::integer[])
      with ordinality as given(at, log_id, zone, position)
    join ${eventAliases} ${a} on ${a.zoneId} = given.zone and ${a.keptAt} = given.at and ${a.logId} = given.log_id
    order by given.position, ${a.otherAt}`);
  return rows;
}

const RECORDS_PER_READ = 2_000;
const NAMES = storedColumns();
const NUMBERS = ["zone_id", "matched_key", "facts"];

/**
 * Writes the events of a file as CSV that Postgres reads: an empty text is quoted, null is not. What a file of an earlier
 * version does not have is null.
 */
export async function writeEventsCsv(
  duckdb: Duckdb,
  { file, format }: { file: string; format: number },
  csv: string,
): Promise<void> {
  const columns = NAMES.map((name) => {
    if (name === "occurred_at") return "strftime(occurred_at at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ')";
    const value = toFileColumnSql(name, format);
    return NUMBERS.includes(name) ? value : `'"' || replace(${value}, '"', '""') || '"'`;
  });
  // The lines are made here, because DuckDB and Postgres do not quote alike.
  const line = columns.map((column) => `coalesce(${column}::varchar, '')`).join(" || ',' || ");
  await duckdb.run([
    {
      sql: `copy (select ${line} as line from ${readFile(file)} order by file_row_number)
        to ${quote(csv)} (format csv, header false, quote '', escape '', delimiter '\u0001')`,
    },
  ]);
}

/** Copies the CSV file of `writeEventsCsv` into waf_events. */
export async function insertEvents(client: pg.PoolClient, csv: string): Promise<void> {
  await pipeline(
    createReadStream(csv),
    client.query(copyFrom(`copy ${getTableName(wafEvents)} (${NAMES.join(", ")}) from stdin (format csv)`)),
  );
}

/** Yields the records of a day with the keys of their events, some at a time. */
export async function* readFileRecords(
  duckdb: Duckdb,
  { events, records }: { events: string; records: string },
  rows: number,
): AsyncGenerator<(EventKey & { record: Buffer })[]> {
  for (let from = 0; from < rows; from += RECORDS_PER_READ) {
    const isPart = `file_row_number between ${from} and ${from + RECORDS_PER_READ - 1}`;
    const [found = []] = await duckdb.run([
      {
        sql: `select epoch_ms(occurred_at), encode(log_id), record
          from (select * from ${readFile(events)} where ${isPart}) e
          join (select * from ${readFile(records)} where ${isPart}) r using (file_row_number)
          where record is not null order by file_row_number`,
      },
    ]);
    yield found.map(([at, logId, record]) => ({
      occurredAt: Number(at),
      logId: Buffer.from(logId as Uint8Array).toString(),
      record: Buffer.from(record as Uint8Array),
    }));
  }
}
