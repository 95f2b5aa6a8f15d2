import type { Dimension } from "./kinds.ts";
import { toUrlPartSql, URL_PARTS, type UrlPart } from "./url-parts.ts";

/**
 * The columns of events that a search can use, in Postgres and in the archive's files, by the names of the search
 * language. A rule's name is its message.
 */
export const SEARCH_COLUMNS = {
  feature: "feature",
  ruleId: "rule_id",
  ip: "ip",
  ja4: "ja4",
  ua: "ua",
  url: "url",
  asn: "asn",
  country: "country",
  action: "action",
  message: "message",
} as const satisfies Readonly<Record<Dimension | "message", string>>;
/** A value of an event that a statement can read: a column, or a part of the URL. */
export type SearchColumn = keyof typeof SEARCH_COLUMNS | UrlPart;

/** Returns the name of a column in a result. A part of the URL, or the method, keeps its own name. */
export function columnOf(field: string): string {
  return Object.hasOwn(SEARCH_COLUMNS, field) ? SEARCH_COLUMNS[field as Dimension] : field;
}

/** Returns SQL for a column of `columnOf`, for Postgres and for DuckDB. `prefix` is the table's alias with a dot. */
export function toColumnSql(column: string, prefix = ""): string {
  const part = URL_PARTS.find((one) => one === column);
  return part === undefined ? `${prefix}${column}` : toUrlPartSql(part, `${prefix}url`);
}
