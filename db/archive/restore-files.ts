import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { getTableName } from "drizzle-orm";
import type pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { storedColumns, toFileColumnSql } from "#model/archive-layout.ts";
import type { EventKey } from "#model/event-key.ts";
import type { Duckdb } from "../duckdb/duckdb.ts";
import { wafEvents } from "../schema/waf-events.ts";
import { quote, readFile } from "./day-files.ts";

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
