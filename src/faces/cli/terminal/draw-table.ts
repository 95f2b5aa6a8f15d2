import type { Paint, Style } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { measureWidth, padToWidth } from "#stages/delivery/message/text-width.ts";

/** Text without control characters, in a style or plain. */
export type Cell = string | { readonly text: string; readonly style: Style };

const GAP = "   ";

/**
 * Returns the lines of a table: a header, then a line per row. Every column except the last is as wide as its widest
 * cell, on a terminal and in a pipe.
 */
export function drawTable(head: readonly string[], rows: readonly (readonly Cell[])[], paint: Paint): string {
  const widths = head.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => textOf(row[column] ?? ""))].map(measureWidth)),
  );
  const drawRow = (cells: readonly Cell[]) =>
    cells
      .map((cell, column) => {
        const text = textOf(cell);
        const fill =
          column === head.length - 1 ? "" : padToWidth(text, widths[column] ?? 0).slice(text.length);
        return `${typeof cell === "string" || text === "" ? text : paint(cell.style, text)}${fill}`;
      })
      .join(GAP)
      .trimEnd();
  const titles = head.map((text) => ({ text, style: "dim" as const }));
  return [titles, ...rows].map((cells) => `${drawRow(cells)}\n`).join("");
}

function textOf(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.text;
}
