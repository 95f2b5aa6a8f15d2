import type { Paint, Style } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { measureWidth, padToWidth, wrapText } from "#stages/delivery/message/text-width.ts";

/** Text without control characters, in a style or plain. */
export type Cell = string | { readonly text: string; readonly style: Style };

const GAP = "   ";

/** A line that is not the first of its row begins with so many blanks. */
const INDENT = 2;
/** The last column is wrapped, but not to fewer columns than these. */
const LEAST_COLUMNS = 30;

/**
 * Returns the lines of a table: a header, then a row each. Every column except the last is as wide as its widest cell, on a
 * terminal and in a pipe. If a row does not fit into `width`, its last columns are on further lines, and the last is wrapped.
 */
export function drawTable(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  paint: Paint,
  width = Number.POSITIVE_INFINITY,
): string {
  const widths = head.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => textOf(row[column] ?? ""))].map(measureWidth)),
  );
  const isNarrow = widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length) > width;
  const drawRow = (cells: readonly Cell[]) => {
    let drawn = "";
    let used = 0;
    for (const [column, cell] of cells.entries()) {
      const isLast = column === head.length - 1;
      const own = widths[column] ?? 0;
      if (isNarrow && column > 0 && used + (isLast ? Math.min(own, LEAST_COLUMNS) : own) > width) {
        drawn = `${drawn.trimEnd()}\n${" ".repeat(INDENT)}`;
        used = INDENT;
      }
      const text = textOf(cell);
      const lines = isNarrow && isLast ? wrapText(text, width - used) : [text];
      const style = (line: string) =>
        typeof cell === "string" || line === "" ? line : paint(cell.style, line);
      drawn += lines.map(style).join(`\n${" ".repeat(used)}`);
      if (isLast) break;
      drawn += `${padToWidth(text, own).slice(text.length)}${GAP}`;
      used += own + GAP.length;
    }
    return drawn.trimEnd();
  };
  const titles = head.map((text) => ({ text, style: "dim" as const }));
  return [titles, ...rows].map((cells) => `${drawRow(cells)}\n`).join("");
}

function textOf(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.text;
}
