import { EVENT_FILE_COLUMNS, storedColumns, toFileColumnSql } from "#model/archive-layout.ts";
import type { Duckdb } from "../duckdb/duckdb.ts";
import type { DuckdbStatement } from "../duckdb/duckdb-messages.ts";
import {
  eventFormat,
  metadata,
  RECORD_FORMAT,
  type RecordsCsv,
  readFactsCsv,
  readFile,
  readRecordsCsv,
  rowSumIn,
  writeInParts,
} from "./day-files.ts";
import type { ZoneDay } from "./day-source.ts";

/** More than a day has addresses. */
const MOST_ADDRESSES = 20_000_000;
/** Values of one statement. */
const PER_STATEMENT = 20_000;
/** Records are some kilobytes at most, and the process of the service holds these at once. */
const RECORDS_PER_READ = 1_000;

/** Events of a file that change, and their new values. */
export interface Replacements {
  /** New texts by address. */
  readonly addresses: ReadonlyMap<string, string>;
  /** Events up to here change; epoch ms. */
  readonly untilAt: number;
  /** Whether the other texts of a request are emptied as well. */
  readonly isErasure: boolean;
  /** Whether the ids of all requests up to then are dropped. */
  readonly dropsRequestIds: boolean;
}

const EMPTIED = new Set(["ja4", "ua", "url", "message", "request_id", "host", "path"]);

/** Returns the addresses of an events file up to a time (epoch ms), and the number of events of each. */
export async function countFileAddresses(
  duckdb: Duckdb,
  file: string,
  untilAt: number,
): Promise<{ ip: string; events: number }[]> {
  const [rows = []] = await duckdb.run(
    [
      {
        sql: `select encode(ip), count(*)::integer from ${readFile(file)}
          where ip not in ('', 'erased') and epoch_ms(occurred_at) <= $1::bigint group by ip`,
        values: [untilAt],
      },
    ],
    { maxRows: MOST_ADDRESSES },
  );
  return rows.map(([ip, events]) => ({
    ip: Buffer.from(ip as Uint8Array).toString(),
    events: Number(events),
  }));
}

/** Returns whether an event of the file has the id of its request. The file has the column. */
export async function hasRequestIds(duckdb: Duckdb, file: string, untilAt: number): Promise<boolean> {
  const [rows = []] = await duckdb.run([
    {
      sql: `select 1 from ${readFile(file)} where request_id <> '' and epoch_ms(occurred_at) <= $1::bigint limit 1`,
      values: [untilAt],
    },
  ]);
  return rows.length > 0;
}

/** The temporary table `replaced` (ip, by): texts of requests are parameters, never part of a statement. */
function bindReplacements({ addresses }: Replacements): DuckdbStatement[] {
  const [ips, by] = [[...addresses.keys()], [...addresses.values()]];
  const inserts: DuckdbStatement[] = [];
  for (let at = 0; at < ips.length; at += PER_STATEMENT)
    inserts.push({
      sql: "insert into replaced select unnest($1), unnest($2)",
      values: [ips.slice(at, at + PER_STATEMENT), by.slice(at, at + PER_STATEMENT)],
    });
  return [{ sql: "create temp table replaced (ip varchar primary key, new_ip varchar)" }, ...inserts];
}

function changed(file: string, { untilAt, dropsRequestIds }: Replacements): string {
  const isChanged = `ip in (select ip from replaced)${dropsRequestIds ? " or request_id <> ''" : ""}`;
  return `from ${readFile(file)} where (${isChanged}) and epoch_ms(occurred_at) <= ${Math.trunc(untilAt)}`;
}

/** Returns which of these log ids are those of events that change. */
export async function findChangedIds(
  duckdb: Duckdb,
  file: string,
  changes: Replacements,
  logIds: readonly string[],
): Promise<string[]> {
  const results = await duckdb.run([
    ...bindReplacements(changes),
    {
      sql: `select encode(log_id) ${changed(file, changes)} and log_id in (select unnest($1))`,
      values: [[...logIds]],
    },
  ]);
  return (results.at(-1) ?? []).map(([logId]) => Buffer.from(logId as Uint8Array).toString());
}

/** An events file that is written anew. */
interface RewrittenFile {
  readonly from: string;
  readonly to: string;
  readonly rows: number;
}

/**
 * Writes an events file of the current version anew, row by row in the same order. Returns the number of changed rows, and whether every other
 * row is the same in both files.
 */
export async function rewriteEvents(
  duckdb: Duckdb,
  { from, to, rows }: RewrittenFile,
  zoneDay: ZoneDay,
  changes: Replacements,
): Promise<{ changed: number; isIntact: boolean }> {
  const isMeant = `epoch_ms(e.occurred_at) <= ${Math.trunc(changes.untilAt)}`;
  const columns = EVENT_FILE_COLUMNS.map(({ name }) => {
    if (name === "ip") return "coalesce(r.new_ip, e.ip) as ip";
    if (name === "request_id" && changes.dropsRequestIds)
      return `case when e.${name} <> '' and ${isMeant} then '' else e.${name} end as ${name}`;
    if (!changes.isErasure) return `e.${name}`;
    if (name === "matched_key") return `case when r.ip is null then e.${name} end as ${name}`;
    return EMPTIED.has(name) ? `case when r.ip is null then e.${name} else '' end as ${name}` : `e.${name}`;
  });
  const others = (file: string) =>
    `(select count(*) || ' ' || coalesce(sum(${rowSumIn("duckdb")}), 0) from ${readFile(file)}
      where file_row_number not in (select row from changed))`;
  const results = await duckdb.run([
    ...bindReplacements(changes),
    { sql: `create temp table changed as select file_row_number as row ${changed(from, changes)}` },
    ...writeInParts(
      { file: to, rows, options: `${eventFormat(rows)}, kv_metadata ${metadata("events", zoneDay)}` },
      (first, end) => `select ${columns.join(", ")} from ${readFile(from)} e
        left join replaced r on r.ip = e.ip and ${isMeant}
        where e.file_row_number >= ${first} and e.file_row_number < ${end} order by e.file_row_number`,
    ),
    { sql: `select count(*)::integer, ${others(from)} = ${others(to)} from changed` },
  ]);
  const [count, isIntact] = results.at(-1)?.[0] ?? [];
  return { changed: Number(count), isIntact: isIntact === true };
}

/** The columns of an event that its facts are read with. An unknown text is empty. */
export interface FactSource {
  readonly row: number;
  readonly ip: string;
  readonly url: string;
  readonly ua: string;
  readonly ruleId: string;
  /** Empty if there is none. */
  readonly record: Buffer;
}

/** Yields what the facts of a day's events are read from, in order, some at a time. */
export async function* readFactSources(
  duckdb: Duckdb,
  { events, records }: { events: string; records: string | null },
  rows: number,
  signal?: AbortSignal,
): AsyncGenerator<FactSource[]> {
  const bytes = (value: unknown) => Buffer.from((value ?? []) as Uint8Array);
  for (let from = 0; from < rows; from += RECORDS_PER_READ) {
    const isPart = `file_row_number between ${from} and ${from + RECORDS_PER_READ - 1}`;
    const record =
      records === null
        ? ""
        : `left join (select * from ${readFile(records)} where ${isPart}) r using (file_row_number)`;
    const [found = []] = await duckdb.run(
      [
        {
          sql: `select file_row_number, encode(ip), encode(url), encode(ua), encode(rule_id), ${records === null ? "null" : "record"}
            from (select * from ${readFile(events)} where ${isPart}) e ${record} order by file_row_number`,
        },
      ],
      { signal },
    );
    yield found.map(([row, ip, url, ua, ruleId, raw]) => ({
      row: Number(row),
      ip: bytes(ip).toString(),
      url: bytes(url).toString(),
      ua: bytes(ua).toString(),
      ruleId: bytes(ruleId).toString(),
      record: bytes(raw),
    }));
  }
}

/**
 * Writes an events file of a version anew, in the current version, with the facts of a CSV file (row, method, request_id,
 * matched_key, facts) as far as it lacks them. Returns whether everything that the file had is the same in both files.
 */
export async function rewriteFacts(
  duckdb: Duckdb,
  { from, format, to, rows, csv }: RewrittenFile & { readonly format: number; readonly csv: string },
  zoneDay: ZoneDay,
): Promise<boolean> {
  const columns = EVENT_FILE_COLUMNS.map(({ name }) => {
    const value = toFileColumnSql(name, format, "e.");
    if (name === "facts") return `coalesce(${value} | f.facts, ${value}, f.facts) as facts`;
    return FACT_NAMES.includes(name) ? `coalesce(${value}, f.${name}) as ${name}` : `${value} as ${name}`;
  });
  const kept = storedColumns(format).filter((name) => name !== "facts" && !FACT_NAMES.includes(name));
  const sumOf = (file: string) =>
    `(select count(*) || ' ' || coalesce(sum(${rowSumIn("duckdb", format, kept)}), 0) from ${readFile(file)})`;
  const results = await duckdb.run([
    { sql: `create temp table found as select * from ${readFactsCsv(csv)}` },
    ...writeInParts(
      { file: to, rows, options: `${eventFormat(rows)}, kv_metadata ${metadata("events", zoneDay)}` },
      (
        first,
        end,
      ) => `select ${columns.join(", ")} from ${readFile(from)} e left join found f on f.row = e.file_row_number
        where e.file_row_number >= ${first} and e.file_row_number < ${end} order by e.file_row_number`,
    ),
    { sql: `select ${sumOf(from)} = ${sumOf(to)}` },
  ]);
  return results.at(-1)?.[0]?.[0] === true;
}

const FACT_NAMES: readonly string[] = ["method", "request_id", "matched_key"];

/** Yields the records of the events that change, in order, some at a time. `events` is the file before the change. */
export async function* readChangedRecords(
  duckdb: Duckdb,
  { events, records }: { events: string; records: string },
  changes: Replacements,
): AsyncGenerator<{ row: number; record: Buffer }[]> {
  for (let after = -1; ; ) {
    const results = await duckdb.run([
      ...bindReplacements(changes),
      { sql: `create temp table changed as select file_row_number as row ${changed(events, changes)}` },
      {
        sql: `select file_row_number, record from ${readFile(records)}
          where record is not null and file_row_number > ${after} and file_row_number in (select row from changed)
          order by file_row_number limit ${RECORDS_PER_READ}`,
      },
    ]);
    const found = (results.at(-1) ?? []).map(([row, record]) => ({
      row: Number(row),
      record: Buffer.from(record as Uint8Array),
    }));
    if (found.length > 0) yield found;
    if (found.length < RECORDS_PER_READ) return;
    after = found.at(-1)?.row ?? after;
  }
}

/**
 * Writes a records file anew with the records of CSV files instead of those in these rows. Returns whether every other
 * record is the same, in the same row, in both files.
 */
export async function rewriteRecords(
  duckdb: Duckdb,
  { from, to, csv, rows }: { from: string; to: string; csv: RecordsCsv; rows: number },
  zoneDay: ZoneDay,
): Promise<boolean> {
  const others = (file: string) =>
    `(select count(*) || ' ' || count(record) || ' ' || coalesce(sum(('0x' || left(md5(encode(file_row_number || ':') || record), 15))::ubigint), 0)
      from ${readFile(file)} where file_row_number not in (select row from emptied))`;
  const results = await duckdb.run([
    { sql: "create temp table emptied (row bigint, record blob)" },
    ...Array.from(csv.parts.values(), (part) => ({
      sql: `insert into emptied select row, from_base64(record) from ${readRecordsCsv(part, csv.longestLine)}`,
    })),
    ...writeInParts(
      { file: to, rows, options: `${RECORD_FORMAT}, kv_metadata ${metadata("records", zoneDay)}` },
      (first, end) => `select coalesce(n.record, r.record) as record from ${readFile(from)} r
        left join emptied n on n.row = r.file_row_number
        where r.file_row_number >= ${first} and r.file_row_number < ${end} order by r.file_row_number`,
    ),
    { sql: `select ${others(from)} = ${others(to)}` },
  ]);
  return results.at(-1)?.[0]?.[0] === true;
}
