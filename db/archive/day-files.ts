/** Writes the files of a day, and sums their rows. */
import {
  ARCHIVE_FORMAT,
  EVENT_FIELD_IDS,
  EVENT_FILE_COLUMNS,
  RECORD_FIELD_IDS,
  storedColumns,
  toFileColumnSql,
} from "#model/archive-layout.ts";
import type { Duckdb } from "../duckdb/duckdb.ts";
import type { DuckdbStatement } from "../duckdb/duckdb-messages.ts";
import type { ZoneDay } from "./day-source.ts";

/**
 * DuckDB evaluates `lower` and `contains` once per value of a dictionary, so all texts get one. A larger dictionary than
 * the limit would be written plain, and a file whose every value is different would grow by it.
 */
const MOST_DICTIONARY_VALUES = 20_000;
const DICTIONARY_SHARE = 0.6;
const EVENTS_PER_GROUP = 32_768;
/** A page of records reads few groups, each of which has to be decompressed. */
const RECORDS_PER_GROUP = 2_048;
/** The longest event as a line of CSV, in bytes: twelve texts of 8,192 characters at most, and quotes. */
const LONGEST_EVENT = 2_097_152;

/** Returns the statement that writes an events file from the CSV file of `copyEvents`. With `zoneId` null, the file has the zones. */
export function writeEventsFile(
  csv: string,
  file: string,
  { zoneId, day }: { readonly zoneId: number | null; readonly day: string },
  rows: number,
): DuckdbStatement {
  const isRead = (name: string) => (name === "zone_id" ? zoneId === null : stored.includes(name));
  const stored = storedColumns();
  const read = EVENT_FILE_COLUMNS.filter(({ name }) => isRead(name)).map(
    ({ name, type }) => `'${name}': '${name === "occurred_at" ? "BIGINT" : type}'`,
  );
  const columns = EVENT_FILE_COLUMNS.map(({ name }) => {
    if (name === "occurred_at") return "make_timestamptz(occurred_at * 1000) as occurred_at";
    if (name === "zone_id" && zoneId !== null) return `${Math.trunc(zoneId)}::integer as zone_id`;
    return stored.includes(name) ? name : `${toFileColumnSql(name, 1)} as ${name}`;
  });
  return {
    sql: `copy (select ${columns.join(", ")} from ${readCsv(csv, read, LONGEST_EVENT)})
      to ${quote(file)} (${eventFormat(rows)}, kv_metadata ${metadata("events", { zoneId: zoneId ?? 0, day })})`,
  };
}

/** Returns the options of COPY for an events file of so many rows. */
export function eventFormat(rows: number): string {
  const dictionary = Math.max(1, Math.min(MOST_DICTIONARY_VALUES, Math.floor(DICTIONARY_SHARE * rows)));
  return `format parquet, parquet_version v2, compression zstd, compression_level 3, row_group_size ${EVENTS_PER_GROUP},
    dictionary_size_limit ${dictionary}, string_dictionary_page_size_limit 16777216, ${EVENT_FIELD_IDS}`;
}

/**
 * Returns the statements that write a records file from CSV files of row numbers and records in base64. A row without a
 * record gets null.
 */
export function writeRecordsFile(
  csv: RecordsCsv,
  file: string,
  zoneDay: ZoneDay,
  rows: number,
): DuckdbStatement[] {
  return writeInParts(
    { file, rows, options: `${RECORD_FORMAT}, kv_metadata ${metadata("records", zoneDay)}` },
    (from, to) => {
      const part = csv.parts.get(partOf(from));
      if (part === undefined) return `select null::blob as record from range(${from}, ${to})`;
      return `select from_base64(record) as record from range(${from}, ${to}) r
      left join ${readRecordsCsv(part, csv.longestLine)} e on e.row = r.range order by r.range`;
    },
  );
}

/** CSV files of row numbers and records in base64. DuckDB's buffers are made for the longest line, in bytes. */
export interface RecordsCsv {
  /** File by number of the part whose rows it holds. */
  readonly parts: ReadonlyMap<number, string>;
  readonly longestLine: number;
}

/** Returns SQL that reads such a file. */
export function readRecordsCsv(csv: string, longestLine: number): string {
  return readCsv(csv, ["'row': 'BIGINT'", "'record': 'VARCHAR'"], longestLine + 1);
}

/** Returns SQL that reads a CSV file of row numbers and facts. */
export function readFactsCsv(csv: string): string {
  const texts = ["'method': 'VARCHAR'", "'request_id': 'VARCHAR'"];
  return readCsv(
    csv,
    ["'row': 'BIGINT'", ...texts, "'matched_key': 'INTEGER'", "'facts': 'SMALLINT'"],
    65_536,
  );
}

/** So many rows with their records are sorted in memory. DuckDB cannot sort a large day of records within its limit. */
const ROWS_PER_PART = 16_384;

/** Returns the number of the part that a row belongs to. */
export function partOf(row: number): number {
  return Math.floor(row / ROWS_PER_PART);
}

/**
 * Returns the statements that write a file part by part and then join the parts. `select` returns SQL for the rows
 * [from, to), in order. The parts lie beside the file.
 */
export function writeInParts(
  { file, rows, options }: { file: string; rows: number; options: string },
  select: (from: number, to: number) => string,
): DuckdbStatement[] {
  const copy = (query: string, to: string, how: string) => ({
    sql: `copy (${query}) to ${quote(to)} (${how})`,
  });
  if (rows <= ROWS_PER_PART) return [copy(select(0, rows), file, options)];
  const parts = Array.from({ length: Math.ceil(rows / ROWS_PER_PART) }, (_, part) => ({
    name: `${file}.${part}`,
    query: select(part * ROWS_PER_PART, Math.min(rows, (part + 1) * ROWS_PER_PART)),
  }));
  const names = parts.map(({ name }) => quote(name)).join(", ");
  return [
    ...parts.map(({ name, query }) => copy(query, name, "format parquet, compression snappy")),
    copy(`select * from read_parquet([${names}], hive_partitioning = false)`, file, options),
  ];
}

/** The options of COPY for a records file. */
export const RECORD_FORMAT = `format parquet, parquet_version v2, compression zstd, compression_level 3,
    row_group_size ${RECORDS_PER_GROUP}, ${RECORD_FIELD_IDS}`;

export function metadata(kind: string, { zoneId, day }: ZoneDay): string {
  return `{longwatch_kind: '${kind}', longwatch_format: '${ARCHIVE_FORMAT}', longwatch_zone: '${Math.trunc(zoneId)}',
    longwatch_day: ${quote(day)}}`;
}

/**
 * Nothing is guessed: every line is read as it was written, or the statement fails. Without new_line, DuckDB takes the
 * first line end of the file for the file's own, also within a quoted text.
 */
function readCsv(file: string, columns: readonly string[], longestLine: number): string {
  return `read_csv(${quote(file)}, auto_detect = false, header = false, delim = ',', quote = '"', escape = '"',
    new_line = '\\n', nullstr = '', allow_quoted_nulls = false, strict_mode = true, parallel = false, max_line_size = ${longestLine},
    buffer_size = ${Math.max(4_194_304, 2 * longestLine)}, columns = {${columns.join(", ")}})`;
}

/** Returns a literal of DuckDB. For paths of this program only; texts of others are parameters. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Returns SQL that reads one file as it is, without columns from the names of its folders. */
export function readFile(file: string): string {
  return `read_parquet(${quote(file)}, hive_partitioning = false, file_row_number = true)`;
}

/** Returns the counts and sums of an events file of a version, in the form of `sumEvents` for Postgres. */
export async function sumEventsFile(
  duckdb: Duckdb,
  file: string,
  format = ARCHIVE_FORMAT,
): Promise<EventSum[]> {
  const [rows = []] = await duckdb.run(
    [
      {
        sql: `select hour(occurred_at)::integer as hour, encode(coalesce(rule_id, '')) as rule, count(*)::integer as events,
            sum(${rowSumIn("duckdb", format)}) as sum
          from ${readFile(file)} group by all order by hour, rule`,
      },
    ],
    { maxRows: MOST_GROUPS },
  );
  return rows.map(([hour, rule, events, sum]) => ({
    hour: Number(hour),
    ruleId: Buffer.from(rule as Uint8Array).toString(),
    events: Number(events),
    sum: sum as bigint,
  }));
}

/** More than any zone has rules times hours. */
const MOST_GROUPS = 2_000_000;

/** Rows, first and last time (epoch ms) of an events file, and whether its rows are in order. */
export async function measureEventsFile(duckdb: Duckdb, file: string) {
  const [rows = []] = await duckdb.run([
    {
      sql: `select count(*)::integer, epoch_ms(min(occurred_at))::double, epoch_ms(max(occurred_at))::double,
          coalesce(bool_and(is_behind), true)
        from (select occurred_at, (occurred_at, log_id) > (lag((occurred_at, log_id)) over ()) as is_behind from ${readFile(file)})`,
    },
  ]);
  const [count, firstAt, lastAt, isOrdered] = rows[0] ?? [];
  return {
    rows: Number(count),
    firstAt: firstAt == null ? null : Number(firstAt),
    lastAt: lastAt == null ? null : Number(lastAt),
    isOrdered: isOrdered === true,
  };
}

/** The rows, records and sum of a records file. */
export interface RecordSum {
  readonly rows: number;
  /** Rows with a record. */
  readonly records: number;
  /** The sum of `hashRecord` over the records. */
  readonly sum: bigint;
}

export async function sumRecordsFile(duckdb: Duckdb, file: string): Promise<RecordSum> {
  const [rows = []] = await duckdb.run([
    {
      sql: `select count(*)::integer, count(record)::integer,
          coalesce(sum(('0x' || left(md5(encode(file_row_number || ':') || record), 15))::ubigint), 0)
        from ${readFile(file)}`,
    },
  ]);
  const [count, records, sum] = rows[0] ?? [];
  return { rows: Number(count), records: Number(records), sum: sum as bigint };
}

/** Number and sum of the events of one rule in one hour. Two sets of events with equal sums are the same events. */
export interface EventSum {
  /** 0 to 23. */
  readonly hour: number;
  /** '' if the rule is unknown or empty, as in rule_buckets. */
  readonly ruleId: string;
  readonly events: number;
  readonly sum: bigint;
}

/** The same function in both engines. `bytes` is the length of a text in bytes. */
const ENGINES = {
  postgres: {
    ms: "(extract(epoch from occurred_at) * 1000)::bigint",
    bytes: "octet_length",
    first60Bits: (hash: string) => `('x' || left(${hash}, 15))::bit(60)::bigint`,
  },
  duckdb: {
    ms: "epoch_ms(occurred_at)",
    bytes: "strlen",
    first60Bits: (hash: string) => `('0x' || left(${hash}, 15))::ubigint`,
  },
} as const;

/**
 * Returns SQL for the first 60 bits of the MD5 of an event: of the stored columns of a file's version, or of some of them.
 * Every value is written with its length, and null differs from every text, so that no two events are written alike. The
 * sum over events does not depend on their order.
 */
export function rowSumIn(
  engine: keyof typeof ENGINES,
  format?: number,
  columns: readonly string[] = storedColumns(format),
): string {
  const { ms, bytes, first60Bits } = ENGINES[engine];
  const values = columns.map((name) => {
    if (name === "occurred_at") return `${ms}::varchar`;
    const { type, isNullable = false } = EVENT_FILE_COLUMNS.find((column) => column.name === name) ?? {};
    if (type === "VARCHAR") return `coalesce(${bytes}(${name})::varchar || ':' || ${name}, '-')`;
    return isNullable ? `coalesce(${name}::varchar, '-')` : `${name}::varchar`;
  });
  return first60Bits(`md5(${values.join(" || '|' || ")})`);
}
