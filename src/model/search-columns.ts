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

/** Removes port, brackets and the prefix of a mapped address. */
const DRESSED = String.raw`^\[?(?:::ffff:)?([0-9.]+|[0-9a-f:]+)(?:\]|\]:[0-9]+|:[0-9]+)?$`;

/**
 * Returns SQL, for Postgres and for DuckDB, for rows that were stored before `toPlainAddress` was
 * applied: whether an address has a port, brackets, a list or the mapped form, and the address without them. Null
 * if the column is another, or if the test is of a part of the text. Few rows pass the first, so the second may take longer.
 */
export function toOlderSpelling(
  column: string,
  sql: string,
  { kind }: { readonly kind: string },
): { readonly isOlder: string; readonly plain: string } | null {
  if (column !== "ip" || (kind !== "equals" && !kind.startsWith("within"))) return null;
  const has = (text: string) => `strpos(${sql}, '${text}') > 0`;
  return {
    isOlder: `(${has(",")} or ${has(":")} and (${has(".")} or ${has("[")}))`,
    plain: `regexp_replace(lower(trim(split_part(${sql}, ',', 1))), '${DRESSED}', '\\1')`,
  };
}
