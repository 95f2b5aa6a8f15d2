/** A value of a row to be copied; dates are sent as epoch milliseconds through `toCopyTime`. */
export type CopyValue = string | number | null;

const ESCAPED = /[\\\n\r\t]/;
const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** One field of COPY's text format (PostgreSQL manual, COPY, "Text Format"). The text must not hold a NUL. */
export function toCopyField(value: CopyValue): string {
  if (value === null) return "\\N";
  if (typeof value === "number") return String(value);
  return ESCAPED.test(value) ? value.replace(/[\\\n\r\t]/g, (char) => ESCAPES[char] ?? char) : value;
}

/** Epoch milliseconds as a timestamp that COPY reads. */
export function toCopyTime(atMs: number): string {
  return new Date(atMs).toISOString();
}
