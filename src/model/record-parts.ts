import { isObject } from "#lib/is-object.ts";

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
