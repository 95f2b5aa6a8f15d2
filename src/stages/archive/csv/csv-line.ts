import { escapeControls, hasControls } from "./escape-controls.ts";

/** Few cells match any of it, so one test finds the cells that are written unchanged. */
const SPECIAL = /[",\r\n]|^[=+\-@\t\uFF1D\uFF0B\uFF0D\uFF20]|\\u/;
const NEEDS_QUOTES = /[",\r\n]/;
/**
 * Matches what a spreadsheet treats as the beginning of a formula, or skips before one. Includes the full-width
 * forms, and the line feed that some strip.
 */
const FORMULA = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;

/**
 * Returns one line by RFC 4180, with its line end. Cells that a spreadsheet would evaluate begin with an apostrophe,
 * which it shows as text. Control characters are written in the form of `escapeControls`.
 */
export function toCsvLine(cells: readonly string[]): string {
  let line = "";
  for (let index = 0; index < cells.length; index++) {
    const text = cells[index] as string;
    if (index > 0) line += ",";
    line += SPECIAL.test(text) || hasControls(text) ? toSafeCell(text) : text;
  }
  return `${line}\r\n`;
}

function toSafeCell(text: string): string {
  const escaped = escapeControls(text);
  const safe = FORMULA.test(escaped) ? `'${escaped}` : escaped;
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
