/** Parts of a record and of its URL. */
import { isObject } from "#lib/json.ts";

/** A header of a record, or the part of a request that matched. The visitor wrote both, and each may be of any type. */
export interface NamedValue {
  readonly name: unknown;
  readonly value: unknown;
}

/** Reads a text that the platform may also send as a number or not at all. Returns null for a value that is no text. */
export function readText(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : null;
  return typeof value === "boolean" ? String(value) : null;
}

/**
 * Returns the headers in a record's `Headers`: a list of objects with `Name` and `Value`, whose keys may be in lower case, or
 * an object of values by name.
 */
export function readHeaders(headers: unknown): NamedValue[] {
  if (isObject(headers)) return Object.entries(headers).map(([name, value]) => ({ name, value }));
  const all = Array.isArray(headers) ? (headers as readonly unknown[]) : [];
  return all.filter(isObject).map((header) => ({
    name: header["Name"] ?? header["name"],
    value: header["Value"] ?? header["value"],
  }));
}

/** Returns the text of the first header that has this name, which is in lower case, and a text; null without one. */
export function findHeader(headers: unknown, name: string): string | null {
  for (const header of readHeaders(headers)) {
    const text = readText(header.value);
    if (text !== null && readText(header.name)?.toLowerCase() === name) return text;
  }
  return null;
}

/** Returns the first match in a record's `TriggerMatch`, which is an object, or a list of objects; null without one. */
export function readMatch(match: unknown): NamedValue | null {
  const found = [match].flat().find(isObject);
  return found === undefined
    ? null
    : { name: found["Key"] ?? found["key"], value: found["Value"] ?? found["value"] };
}

/** The parts of an event's URL that a search can use. */
export const URL_PARTS = ["host", "path"] as const;
export type UrlPart = (typeof URL_PARTS)[number];

const UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/**
 * Returns a part of a URL. The host has no user, no port and lower-case ASCII letters; '' if the URL does not begin with a
 * scheme. The path has no query and no fragment, is not decoded, and is '/' if the URL has none. Neither contains a `?` or a
 * `#`. `toUrlPartSql` and `toUrlPartInDuckdb` compute the same.
 */
export function toUrlPart(part: UrlPart, url: string): string {
  if (url === "") return "";
  const [head = ""] = url.split(/[?#]/, 1);
  const [, authority, path = head] = /^[^/]+:\/\/([^/]*)(.*)$/s.exec(head) ?? [];
  if (part === "path") return path === "" ? "/" : path;
  const host = authority?.split("@").at(-1) ?? "";
  const bare = host.startsWith("[") ? (/^\[[^\]]*\]/.exec(host)?.[0] ?? "") : host.split(":", 1)[0];
  return (bare ?? "").replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/**
 * Returns Postgres's SQL for a part of the URL in `column`; '' if the URL is null or empty. It has no regular expression, with
 * which Postgres would take up to three times as long.
 */
export function toUrlPartSql(part: UrlPart, column: string): string {
  const scheme = `split_part(${column}, '/', 1)`;
  const hasScheme = `strpos(${column}, '://') > 1 and strpos(${column}, '://') = length(${scheme})
    and translate(${scheme}, '?#', '') = ${scheme}`;
  const withoutQuery = (text: string) => `split_part(split_part(${text}, '?', 1), '#', 1)`;
  const [head, authority] = [withoutQuery(column), withoutQuery(`split_part(${column}, '/', 3)`)];
  if (part === "path") {
    const behind = `substr(${head}, length(${scheme}) + length(${authority}) + 3)`;
    return `case when ${column} <> '' then
      coalesce(nullif(case when ${hasScheme} then ${behind} else ${head} end, ''), '/') else '' end`;
  }
  const host = `split_part(${authority}, '@', -1)`;
  const bare = `case when substr(${host}, 1, 1) <> '[' then split_part(${host}, ':', 1)
    when strpos(${host}, ']') > 0 then split_part(${host}, ']', 1) || ']' else '' end`;
  // Most hosts are in lower case, and translate takes longer than everything else.
  return `case when not (${hasScheme}) then '' when ${authority} = lower(${authority}) then ${bare}
    else translate(${bare}, '${UPPER}', '${UPPER.toLowerCase()}') end`;
}

/**
 * Returns DuckDB's SQL for the same. DuckDB takes 40 ms to plan the nested functions of `toUrlPartSql`, and several times as long to
 * compute them.
 */
export function toUrlPartInDuckdb(part: UrlPart, column: string): string {
  if (part === "path") {
    const path = `regexp_extract(${column}, '^(?:[^/?#]+://[^/?#]*)?([^?#]*)', 1)`;
    return `case when ${column} <> '' then coalesce(nullif(${path}, ''), '/') else '' end`;
  }
  const authority = `regexp_extract(${column}, '^[^/?#]+://([^/?#]*)', 1)`;
  const host = String.raw`regexp_extract(${authority}, '^(?s:.*@)?(\[[^\]]*\]|[^:\[][^:]*|)', 1)`;
  return `coalesce(case when ${host} = lower(${host}) then ${host}
    else translate(${host}, '${UPPER}', '${UPPER.toLowerCase()}') end, '')`;
}
