const NEEDS_QUOTES = /[",\r\n]/;
/**
 * What a spreadsheet takes for the beginning of a formula, or skips before one: also the full-width forms, and the line
 * feed that some strip.
 */
const FORMULA = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;

/** One line by RFC 4180, with its end; cells that a spreadsheet would run begin with an apostrophe, which it shows as text. */
export function toCsvLine(cells: readonly string[]): string {
  let line = "";
  for (const [index, text] of cells.entries()) {
    const safe = FORMULA.test(text) ? `'${text}` : text;
    const cell = NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    line += index === 0 ? cell : `,${cell}`;
  }
  return `${line}\r\n`;
}
