import { isObject } from "../../lib/is-object.ts";

/** A record, taken apart. */
export interface ReadRecord {
  /** Whether it is a row of a search, which has no labels. */
  readonly isRow: boolean;
  /** JSON text as a rule; null where there is none. */
  readonly log: string | null;
  readonly labels: Record<string, unknown> | null;
}

/**
 * An entry of the list (platform API spec 2.7), whose `log` is text, or, of a day that had left the list when it was
 * copied, a row of a search (2.4), whose `log` is an object. Null for what is neither.
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
