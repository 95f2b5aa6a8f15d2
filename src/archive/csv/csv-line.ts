import { escapeControls, hasControls } from "./escape-controls.ts";

/** Few cells have any of it: one look tells which are written as they are. */
const SPECIAL = /[",\r\n]|^[=+\-@\t\uFF1D\uFF0B\uFF0D\uFF20]|\\u/;
const NEEDS_QUOTES = /[",\r\n]/;
/**
 * What a spreadsheet takes for the beginning of a formula, or skips before one: also the full-width forms, and the line
 * feed that some strip.
 */
const FORMULA = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;

/**
 * One line by RFC 4180, with its end. Cells that a spreadsheet would run begin with an apostrophe, which it shows as text;
 * controls are written as `escapeControls` writes them.
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
