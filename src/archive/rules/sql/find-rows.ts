import { toFileColumnSql } from "#model/archive-layout.ts";
import type { EventQuery } from "#model/search-condition.ts";
import { type ArchivedEvent, EVENT_TEXTS, type EventKey, toArchivedEvent } from "#model/waf-event.ts";
import type { SearchPlan } from "../query/plan-search.ts";
import { type EventsFile, groupFiles, readFiles } from "./event-source.ts";
import { bound, duck, join, type Piece, raw, toClauses, toTimeCondition } from "./to-condition.ts";

/** The rows of one file that a search finds. */
export interface FileMatches {
  /** Position in the list of files. */
  readonly file: number;
  readonly total: number;
  /** Numbers of the rows that are on the page. */
  readonly rows: readonly number[];
}

/**
 * Returns the statement for the matches of each file (oldest first) and the rows of them that are on the page of newest
 * events. `newerOpen` says by file how many events of open days that match are newer than the file's day. One scan notes where the matches are; `readRows` fetches those of the page by number. A file's rows are in
 * order already.
 */
export function findMatches(
  files: readonly EventsFile[],
  plan: EventQuery & Pick<SearchPlan, "page" | "pageSize">,
  newerOpen: readonly number[],
): Piece {
  const [offset, end] = [plan.page * plan.pageSize, (plan.page + 1) * plan.pageSize];
  const open = raw(newerOpen.map((newer, file) => `(${file}, ${newer})`).join(", "));
  const matches = groupFiles(files, plan).map(
    (group) => duck`select ${group.position} as f, file_row_number as r from ${readFiles(group.files)}
      where ${group.isInTime} and ${toClauses(plan, group.format)}`,
  );
  return duck`with m as materialized (${join(matches, " union all ")}),
    c as materialized (select f, count(*) as n from m group by f),
    s as materialized (
      select c.f, n, open + coalesce(sum(n) over (order by c.f desc rows between unbounded preceding and 1 preceding), 0) as before
      from c join (values ${open}) o(f, open) on o.f = c.f),
    p as (
      select m.f, m.r, s.before + row_number() over (partition by m.f order by m.r desc) - 1 as place
      from m join s on s.f = m.f where s.before < ${end} and s.before + s.n > ${offset}),
    w as (select f, list(r) as rows from p where place >= ${offset} and place < ${end} group by f)
    select json_array(s.f, s.n, coalesce(w.rows, [])) from s left join w on w.f = s.f`;
}

export function readMatches(rows: readonly string[]): FileMatches[] {
  return rows.map((row) => {
    const [file, total, numbers] = JSON.parse(row) as [number, number, number[]];
    return { file, total, rows: numbers };
  });
}

/** Some rows of one file: by number, or from `first` on, `count` of them. */
export interface FileRows extends EventsFile {
  readonly rows: readonly number[] | { readonly first: number; readonly count: number };
}

/** An event with its place. */
export interface PlacedEvent extends ArchivedEvent {
  /** Position in the list of `FileRows`. */
  readonly file: number;
  readonly row: number;
}

/** Returns the columns of an event, of a file of a version. */
function eventColumns({ format }: Pick<EventsFile, "format">): string {
  const texts = EVENT_TEXTS.map((column) => `coalesce(${toFileColumnSql(column, format)}, '')`);
  return `epoch_ms(occurred_at), ${texts.join(", ")}`;
}

/** Returns the statement that fetches events by their rows' numbers. */
export function fetchRows(wanted: readonly FileRows[]): Piece {
  return selectByNumber(wanted, eventColumns);
}

/** Returns the events in the order of their places. */
export function readRows(rows: readonly string[]): PlacedEvent[] {
  const events = rows.map((text) => {
    const [file, row, occurredAt, ...texts] = JSON.parse(text) as [number, number, number, ...string[]];
    return { file, row, ...toArchivedEvent(occurredAt, texts) };
  });
  return events.sort((one, other) => one.file - other.file || one.row - other.row);
}

/** Returns the statement for events that a search finds, in no order, at most `limit`. `readRows` reads them. */
export function fetchSome(files: readonly EventsFile[], plan: EventQuery, limit: number): Piece {
  const found = groupFiles(files, plan, EVENT_TEXTS).map(
    (
      group,
    ) => duck`select json_array(${group.position}, file_row_number, ${raw(eventColumns(group))}) from ${readFiles(group.files)}
      where ${group.isInTime} and ${toClauses(plan, group.format)}`,
  );
  return duck`from (${join(found, " union all ")}) limit ${limit}`;
}

/** Returns the statement that fetches records by their rows' numbers. */
export function fetchRecords(wanted: readonly FileRows[]): Piece {
  return selectByNumber(wanted, () => "base64(record)");
}

/** Returns the statement for the next rows of a file that a search finds after an event, oldest first. */
export function fetchOnward(
  file: EventsFile,
  { after, limit, ...query }: EventQuery & { readonly after: EventKey | null; readonly limit: number },
): Piece {
  const from = after?.occurredAt ?? query.from;
  const isAfter =
    after === null
      ? raw("true")
      : duck`(occurred_at > to_timestamp(${after.occurredAt} / 1000.0) or log_id > ${bound(after.logId)})`;
  return duck`select json_array(0, file_row_number, ${raw(eventColumns(file))}) from ${readFiles([file])}
    where ${toTimeCondition({ from, to: query.to })} and ${toClauses(query, file.format)} and ${isAfter}
    order by file_row_number limit ${limit}`;
}

export interface PlacedRecord {
  readonly file: number;
  readonly row: number;
  readonly record: Buffer | undefined;
}

export function readRecords(rows: readonly string[]): PlacedRecord[] {
  return rows.map((text) => {
    const [file, row, record] = JSON.parse(text) as [number, number, string | null];
    return { file, row, record: record === null ? undefined : Buffer.from(record, "base64") };
  });
}

function selectByNumber(wanted: readonly FileRows[], columns: (file: EventsFile) => string): Piece {
  const selects = wanted.map(({ rows, ...of }, file) => {
    const isWanted =
      "first" in rows
        ? duck`file_row_number >= ${rows.first} and file_row_number < ${rows.first + rows.count}`
        : duck`file_row_number in (${raw(rows.join(", "))})`;
    return duck`select json_array(${file}, file_row_number, ${raw(columns(of))}) from ${readFiles([of])} where ${isWanted}`;
  });
  return join(selects, " union all ");
}

/** Returns the statement for the rows of events of these times (epoch ms). */
export function findRowsAt(path: string, times: readonly number[]): Piece {
  const wanted = join(
    times.map((time) => duck`epoch_ms(${time})`),
    ", ",
  );
  return duck`select json_array(file_row_number, epoch_ms(occurred_at), log_id) from ${readFiles([path])}
    where occurred_at::timestamp in (${wanted})`;
}

/** Returns the keys of events and their rows. */
export function readFoundRows(rows: readonly string[]): (EventKey & { readonly row: number })[] {
  return rows.map((text) => {
    const [row, occurredAt, logId] = JSON.parse(text) as [number, number, string];
    return { row, occurredAt, logId };
  });
}

/** Returns the statement for the first row and the number of rows of a file that lie in a span. */
export function countInSpan(path: string, span: { readonly from: number; readonly to: number }): Piece {
  return duck`select json_array(coalesce(min(file_row_number), 0), count(*)) from ${readFiles([path])}
    where ${toTimeCondition(span)}`;
}

/** Returns the statement for the number of rows of a file before an event. */
export function countBefore(path: string, { occurredAt, logId }: EventKey): Piece {
  const file = readFiles([path]);
  const moment = raw(`to_timestamp(${occurredAt} / 1000.0)`);
  return duck`select json_array(coalesce(
      (select max(file_row_number) + 1 from ${file} where occurred_at = ${moment} and log_id < ${bound(logId)}),
      (select count(*) from ${file} where occurred_at < ${moment})))`;
}
