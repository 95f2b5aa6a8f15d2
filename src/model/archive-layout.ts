import type { ArchiveKind } from "./kinds.ts";
/**
 * Layout of the archive's Parquet files: folders, names and columns. Other engines read the files as they are, so a
 * change needs a new `ARCHIVE_FORMAT`, and readers of both.
 */

/** Version of the columns below. */
export const ARCHIVE_FORMAT = 1;

interface ArchiveColumn {
  readonly name: string;
  /** DuckDB's type. */
  readonly type: string;
  readonly isNullable: boolean;
}

const text = (name: string, isNullable = true): ArchiveColumn => ({ name, type: "VARCHAR", isNullable });

/**
 * The columns of an events file, named as those of waf_events. Null and '' differ as they do there. Rows are ascending
 * by (occurred_at, bytes of log_id). A records file has one column, `record` (BLOB): row n is the record of row n of
 * the events file, byte for byte as the platform sent it; null if there is none.
 */
export const EVENT_FILE_COLUMNS: readonly ArchiveColumn[] = [
  // An instant: INT64 TIMESTAMP(MICROS, isAdjustedToUTC = true).
  { name: "occurred_at", type: "TIMESTAMPTZ", isNullable: false },
  { name: "zone_id", type: "INTEGER", isNullable: false },
  text("log_id", false),
  text("route", false),
  text("feature"),
  text("rule_id"),
  text("ip"),
  text("ja4"),
  text("ua"),
  text("url"),
  text("asn"),
  text("country"),
  text("action"),
  text("message"),
];

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
