import { isInEveryFile, toFileColumnSql } from "#model/archive-layout.ts";
import { columnOf } from "#model/fields.ts";
import type { SearchPlan } from "../query/plan-search.ts";
import { duck, join, type Piece, raw, toClauses, toTimeCondition } from "./to-condition.ts";

/** An events file of an archive day. */
export interface EventsFile {
  /** Absolute. */
  readonly path: string;
  /** Version of its columns. */
  readonly format: number;
  /** True if all events of the file are known to be in the window. */
  readonly isInside?: boolean;
}

/** Places of the events of a search. */
export interface EventSource {
  /** The events files of archive days, oldest first. */
  readonly files: readonly EventsFile[];
  /** The rows of all other days that pass the search, written by `copyOpenRows`; null if there are none. */
  readonly openRows: OpenRows | null;
}

export interface OpenRows {
  /** Absolute path of a CSV file. */
  readonly path: string;
  /** The columns of the file. `occurred_at` is epoch ms. No value is null. */
  readonly columns: readonly string[];
}

/** Types in the CSV file of open rows; of all other columns VARCHAR. */
const TYPES: Readonly<Record<string, string>> = {
  occurred_at: "BIGINT",
  zone_id: "INTEGER",
  matched_key: "INTEGER",
  facts: "SMALLINT",
};

/** Returns the statements that must run before those that read from `selectEvents`. */
export function prepareSource({ openRows }: EventSource): Piece[] {
  if (openRows === null) return [];
  const types = openRows.columns.map((column) => `'${column}': '${TYPES[column] ?? "VARCHAR"}'`);
  const columns = openRows.columns.map((column) =>
    column === "occurred_at" ? "to_timestamp(occurred_at / 1000.0) as occurred_at" : column,
  );
  // A line may be as long as all texts of an event together. DuckDB would make the buffer sixteen times as long as a
  // line. Without new_line, it takes the first line end of the file for the file's own, also within a quoted text.
  return [
    raw(`create temp table open_rows as select ${columns.join(", ")} from read_csv(${quote(openRows.path)},
      auto_detect = false, header = false, delim = ',', quote = '"', escape = '"', allow_quoted_nulls = false,
      new_line = '\\n', parallel = false, max_line_size = 2097152, buffer_size = 8388608, columns = {${types.join(", ")}})`),
  ];
}

/** Files that a statement reads alike. */
export interface FileGroup {
  readonly files: readonly EventsFile[];
  readonly format: number;
  /** The condition for events of the window. */
  readonly isInTime: Piece;
  /** SQL for the position of a row's file in the list of all files. */
  readonly position: Piece;
}

/**
 * Returns the files by their versions if a statement needs a column that not all of them have, or a clause tests one, and those that
 * the window cuts by themselves: the times of the others need no test. DuckDB compares only the columns that are read.
 */
export function groupFiles(
  files: readonly EventsFile[],
  plan: Pick<SearchPlan, "from" | "to" | "clauses">,
  columns: readonly string[] = [],
): FileGroup[] {
  const needed = [...columns, ...plan.clauses.flatMap((clause) => clause.columns.map(columnOf))];
  const isAlike = needed.every(isInEveryFile);
  const places = [...files.entries()];
  const formatOf = ({ format }: EventsFile) => (isAlike ? 1 : format);
  const groups = Map.groupBy(places, ([, file]) => `${formatOf(file)} ${file.isInside}`);
  return Array.from(groups.values(), (ofFormat) => ({
    files: ofFormat.map(([, file]) => file),
    format: Math.max(...ofFormat.map(([, file]) => formatOf(file))),
    isInTime: ofFormat.every(([, { isInside }]) => isInside) ? raw("true") : toTimeCondition(plan),
    position:
      ofFormat.length === files.length
        ? raw("file_index::bigint")
        : raw(`([${ofFormat.map(([place]) => place).join(", ")}]::bigint[])[file_index::bigint + 1]`),
  }));
}

/**
 * Returns a SELECT of columns of all events that a search finds. No text is null, unless `keepsNulls`: a column that
 * is read as it is keeps its dictionary, by which DuckDB groups faster. With `hasPlaces`, it has the position of the event's file as
 * well, -1 for an open row, and the row there.
 */
export function selectEvents(
  { files, openRows }: EventSource,
  plan: Pick<SearchPlan, "from" | "to" | "clauses">,
  columns: readonly string[],
  { keepsNulls = false, hasPlaces = false } = {},
): Piece {
  const selects = groupFiles(files, plan, columns).map((group) => {
    const known = columns.map((column) => {
      const value = toFileColumnSql(column, group.format);
      if (value === column && (keepsNulls || column in TYPES)) return column;
      return `${keepsNulls || column in TYPES ? value : `coalesce(${value}, '')`} as ${column}`;
    });
    const place = hasPlaces ? duck`${group.position} as file, file_row_number as row, ` : raw("");
    return duck`select ${place}${raw(known.join(", "))} from ${readFiles(group.files)}
        where ${group.isInTime} and ${toClauses(plan, group.format)}`;
  });
  const place = hasPlaces ? "-1 as file, -1 as row, " : "";
  if (openRows !== null) selects.push(raw(`select ${place}${columns.join(", ")} from open_rows`));
  return join(selects, " union all ");
}

/** Returns the table of the rows of files. The folders' names would become columns. */
export function readFiles(files: readonly (EventsFile | string)[]): Piece {
  const paths = files.map((file) => quote(typeof file === "string" ? file : file.path));
  return raw(`read_parquet([${paths.join(", ")}], hive_partitioning = false)`);
}

/** Returns a path as a constant of SQL. */
export function quote(path: string): string {
  return `'${path.replaceAll("'", "''")}'`;
}
