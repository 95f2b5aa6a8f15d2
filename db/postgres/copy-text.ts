import { MINUTE_MS } from "#lib/units.ts";

/** A value of a row to be copied. Times go through `createTimeWriter`. */
export type CopyValue = string | number | null;

const ESCAPED = /[\\\n\r\t]/;
const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Returns one field of COPY's text format (PostgreSQL manual, COPY, "Text Format"). The text must not hold a NUL. */
export function toCopyField(value: CopyValue): string {
  if (value === null) return "\\N";
  if (typeof value === "number") return String(value);
  return ESCAPED.test(value) ? value.replace(/[\\\n\r\t]/g, (char) => ESCAPES[char] ?? char) : value;
}

/**
 * Returns a function that writes epoch milliseconds as timestamps for COPY. It is fast for times of the same minute.
 */
export function createTimeWriter(): (atMs: number) => string {
  let minute = Number.NaN;
  let prefix = "";
  return (atMs) => {
    const rest = atMs % MINUTE_MS;
    if (atMs - rest !== minute) {
      minute = atMs - rest;
      prefix = new Date(minute).toISOString().slice(0, -"00.000Z".length);
    }
    return `${prefix}${String(rest / 1_000)}Z`;
  };
}
