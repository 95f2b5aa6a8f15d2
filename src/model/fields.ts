/** The fields that a search can ask for, and their columns. */
import type { Dimension, Operator } from "./kinds.ts";
import { toUrlPartSql, URL_PARTS, type UrlPart } from "./record-parts.ts";

/**
 * The fields of an event that a search can use: their names on every face of Longwatch, and their keys in its code and
 * in the platform's API. A key is accepted as a name too.
 */
export const FIELDS = {
  rule: "ruleId",
  action: "action",
  address: "ip",
  country: "country",
  network: "asn",
  host: "host",
  path: "path",
  method: "method",
  url: "url",
  agent: "ua",
  ja4: "ja4",
  feature: "feature",
  zone: "zone",
} as const;
export type FieldName = keyof typeof FIELDS;
export type Field = (typeof FIELDS)[FieldName];
export const FIELD_NAMES = Object.keys(FIELDS) as FieldName[];

/** Returns the field for a name or a key of the platform; null for any other text. */
export function toFieldName(name: unknown): FieldName | null {
  return FIELD_NAMES.find((one) => one === name || FIELDS[one] === name) ?? null;
}

/** The columns that a result can choose besides the fields. `status` and `matched` are in the records of events only. */
const OTHER_COLUMNS = [
  ...(["zone", "time", "timestamp", "logId", "message"] as const),
  ...(["query", "request_id", "status", "matched"] as const),
];
/** All columns that a result can choose. The platform's names of the fields are accepted, too. */
export const COLUMN_NAMES = [...new Set([...OTHER_COLUMNS, ...FIELD_NAMES, ...Object.values(FIELDS)])];

/** The actions as events store them, and as people read them. */
const ACTIONS: Readonly<Record<string, string>> = {
  blocked: "block",
  challenged: "challenge",
  logged: "log",
  allowed: "allow",
  bypassed: "bypass",
};
const ACTION_RULE = `must be ${Object.entries(ACTIONS)
  .map(([shown, stored]) => `${stored} (or ${shown})`)
  .join(", ")}; contains finds any other word of the platform`;

/** Patterns of values that no event has in the field, each with its rule. */
const IMPOSSIBLE: Readonly<Partial<Record<FieldName, readonly [RegExp, string]>>> = {
  rule: [/\*/, "must be the id of a rule; wildcard finds a family such as 942*"],
  address: [/\//, "must be an address such as 203.0.113.7; cidr finds a network such as 203.0.113.0/24"],
  country: [/^(?!..$)/s, "must be a country's two letters, such as DE"],
  network: [/^(?!(?:AS)?\d+$)/i, "must be the number of a network, such as AS64500 or 64500"],
  host: [/[/?#@]/, "must be a host name such as shop.example.com, without scheme and path"],
  path: [/[?#]|^[^/]+:\/\//, "must be a path such as /login, without host and query; url is the whole URL"],
  method: [/[^\w!#$%&'*+.^`|~-]/, "must be a method such as POST"],
  zone: [/\D/, "must be the number of a zone"],
};
/** Patterns of characters that no value of the field contains, each with its rule. */
const IMPOSSIBLE_PART: Readonly<Partial<Record<FieldName, readonly [RegExp, string]>>> = {
  host: [/[/?#]/, "must be a part of a host name, without path; url is the whole URL"],
  path: [/[?#]/, "must be a part of a path, without query; url is the whole URL"],
};

/** Returns the broken rule if no event can have this value in the field; null otherwise. */
export function refuseValue(field: FieldName, op: string, value: string): string | null {
  if (value === "" || op === "cidr") return null;
  const isWhole = op === "eq" || op === "in";
  if (isWhole && field === "action" && !Object.entries(ACTIONS).flat().includes(value.toLowerCase()))
    return ACTION_RULE;
  const [pattern, rule] = (isWhole ? IMPOSSIBLE : IMPOSSIBLE_PART)[field] ?? [];
  return pattern?.test(value) === true ? (rule ?? null) : null;
}

/**
 * Returns the stored texts that match a value: the text itself, and the stored form of a text that people read or
 * write. `blocked` is stored as `block`, AS64500 as 64500, de as DE.
 */
export function toStoredValues(field: FieldName, op: string, value: string): readonly string[] {
  const stored =
    op === "eq" || op === "in" || (op === "contains" && field === "action") ? toStored(field, value) : value;
  return stored === value ? [value] : [value, stored];
}

function toStored(field: FieldName, value: string): string {
  if (field === "action") {
    const word = value.toLowerCase();
    return Object.hasOwn(ACTIONS, word) ? (ACTIONS[word] ?? value) : word;
  }
  if (field === "network") return value.replace(/^AS(?=\d)/i, "");
  if (field === "country" || field === "method") return value.toUpperCase();
  if (field === "host") return value.toLowerCase();
  return field === "path" && /^[^/*]/.test(value) ? `/${value}` : value;
}

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
/** A value of an event that a statement can read: a column, a part of the URL, or the zone. */
export type SearchColumn = keyof typeof SEARCH_COLUMNS | UrlPart | "zone" | "log_id" | "request_id";

/** The only column of a search that is a number. */
export const ZONE_COLUMN = "zone_id";

/** Returns the name of a column in a result. A part of the URL, or the method, keeps its own name. */
export function columnOf(field: string): string {
  if (field === "zone") return ZONE_COLUMN;
  return Object.hasOwn(SEARCH_COLUMNS, field) ? SEARCH_COLUMNS[field as Dimension] : field;
}

/** Returns SQL for a column of `columnOf`, for Postgres and for DuckDB. `prefix` is the table's alias with a dot. */
export function toColumnSql(column: string, prefix = ""): string {
  if (column === ZONE_COLUMN) return `${prefix}${column}::text`;
  const part = URL_PARTS.find((one) => one === column);
  return part === undefined ? `${prefix}${column}` : toUrlPartSql(part, `${prefix}url`);
}

/** One clause; several values mean any of them. */
export interface Filter {
  /** The events that the clause does not match. An extension of the platform's search. */
  readonly not?: true;
  /** The host, the path and the method are extensions, too. */
  readonly field: Field;
  readonly op: Operator;
  readonly value: readonly string[];
}
