import { isObject } from "#lib/json.ts";
import { cleanText, MAX_DIMENSION_CHARS } from "#lib/text.ts";

/** The parsed parts of a record. */
export interface ReadRecord {
  /** True for a row of a search, which has no labels. */
  readonly isRow: boolean;
  /** Usually JSON text; null if there is none. */
  readonly log: string | null;
  readonly labels: Record<string, unknown> | null;
}

/**
 * Reads an entry of the list (platform API spec 2.7), whose `log` is text, or a row of a search (2.4), whose `log` is
 * an object. Rows are stored for days that had left the list when they were copied. Returns null for any other
 * record.
 */
export function readRecord(record: Buffer): ReadRecord | null {
  let entry: unknown;
  try {
    entry = JSON.parse(record.toString());
  } catch {
    return null;
  }
  if (!isObject(entry)) return null;
  const { log, labels } = entry;
  const text = isObject(log) ? JSON.stringify(log) : typeof log === "string" ? log : null;
  return { isRow: isObject(entry["fields"]), log: text, labels: isObject(labels) ? labels : null };
}

/** Returns the method in an event's record; '' if there is no record, or if the record is a search's row, which has none. */
export function readMethod(record: Buffer | undefined): string {
  const method = record === undefined ? undefined : readRecord(record)?.labels?.["method"];
  return typeof method === "string" ? cleanText(method, MAX_DIMENSION_CHARS) : "";
}
