import { ARCHIVE_KINDS, type ArchiveKind } from "./kinds.ts";
import { toUrlPartInDuckdb, URL_PARTS } from "./record-parts.ts";

/**
 * Layout of the archive's Parquet files: folders, names and columns. Other engines read the files as they are, so a
 * change needs a new `ARCHIVE_FORMAT`, and readers of both.
 */

/** Version of the columns below. Files of version 1 have those up to `message`. */
export const ARCHIVE_FORMAT = 2;

interface ArchiveColumn {
  readonly name: string;
  /** The first version of files that have the column. */
  readonly since: number;
  /** Names the column in a catalogue, also after the column was renamed. A number is never given to another column. */
  readonly fieldId: number;
  /** DuckDB's type. */
  readonly type: string;
  readonly isNullable: boolean;
}

const text = (fieldId: number, name: string, isNullable = true, since = 1): ArchiveColumn => ({
  name,
  since,
  fieldId,
  type: "VARCHAR",
  isNullable,
});

/**
 * The columns of an events file, named as those of waf_events. Null and '' differ as they do there. Rows are ascending
 * by (occurred_at, bytes of log_id). A records file has one column, `record` (BLOB): row n is the record of row n of
 * the events file, byte for byte as the platform sent it; null if there is none.
 */
export const EVENT_FILE_COLUMNS: readonly ArchiveColumn[] = [
  // An instant: INT64 TIMESTAMP(MICROS, isAdjustedToUTC = true).
  { name: "occurred_at", since: 1, fieldId: 1, type: "TIMESTAMPTZ", isNullable: false },
  { name: "zone_id", since: 1, fieldId: 2, type: "INTEGER", isNullable: false },
  text(3, "log_id", false),
  text(4, "route", false),
  text(5, "feature"),
  text(6, "rule_id"),
  text(7, "ip"),
  text(8, "ja4"),
  text(9, "ua"),
  text(10, "url"),
  text(11, "asn"),
  text(12, "country"),
  text(13, "action"),
  text(14, "message"),
  text(15, "method", true, 2),
  text(16, "request_id", true, 2),
  // Parts of the URL, as `toUrlPart` returns them. Null if the URL is.
  text(17, "host", true, 2),
  text(18, "path", true, 2),
  { name: "matched_key", since: 2, fieldId: 19, type: "INTEGER", isNullable: true },
  { name: "facts", since: 2, fieldId: 20, type: "SMALLINT", isNullable: true },
];

/** The names of the columns that waf_events has as well, in a file of this version. The others are computed from the URL. */
export function storedColumns(format = ARCHIVE_FORMAT): string[] {
  return EVENT_FILE_COLUMNS.filter(
    ({ name, since }) => since <= format && !(URL_PARTS as readonly string[]).includes(name),
  ).map(({ name }) => name);
}

/** Returns whether files of every version have a column. */
export function isInEveryFile(name: string): boolean {
  return EVENT_FILE_COLUMNS.some((column) => column.name === name && column.since === 1);
}

/**
 * Returns DuckDB's SQL for a column of an events file of a version, which may not have it: a part of the URL is computed,
 * and everything else is unknown.
 */
export function toFileColumnSql(name: string, format: number, prefix = ""): string {
  const column = EVENT_FILE_COLUMNS.find((one) => one.name === name);
  if (column === undefined || column.since <= format) return `${prefix}${name}`;
  const part = URL_PARTS.find((one) => one === name);
  if (part === undefined) return `null::${column.type}`;
  return `case when ${prefix}url is null then null else ${toUrlPartInDuckdb(part, `${prefix}url`)} end`;
}

/** DuckDB's option of COPY that gives the columns of an events file their field ids. Files of earlier versions have none. */
export const EVENT_FIELD_IDS = `field_ids {${EVENT_FILE_COLUMNS.map(({ name, fieldId }) => `${name}: ${fieldId}`).join(", ")}}`;
/** The same for a records file. The number is used in no events file, because a catalogue may join both. */
export const RECORD_FIELD_IDS = "field_ids {record: 100}";

/**
 * Returns the folder of a zone's day, relative to the archive folder. The names follow Hive's convention, so engines find
 * partitions in them. A reader in DuckDB passes `hive_partitioning=false`.
 */
export function archiveFolder(kind: ArchiveKind, zoneId: number, day: string): string {
  return `${kind}/zone=${zoneId}/day=${day}`;
}

/** Returns the path of a file, relative to the archive folder. A file of other content has another name. */
export function archivePath(kind: ArchiveKind, zoneId: number, day: string, sha256: string): string {
  return `${archiveFolder(kind, zoneId, day)}/${sha256.slice(0, 16)}.parquet`;
}

/** Returns what the folders of a file name; null for a name that no archive file has. */
export function readArchivePath(path: string): { kind: ArchiveKind; zoneId: number; day: string } | null {
  const [, name, zone, day = ""] = /^(\w+)\/zone=(\d+)\/day=([\d-]+)\//.exec(path) ?? [];
  const kind = ARCHIVE_KINDS.find((one) => one === name);
  return kind === undefined ? null : { kind, zoneId: Number(zone), day };
}
