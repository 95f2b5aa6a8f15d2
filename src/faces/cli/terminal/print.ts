/** What commands print: tables, events and lines that fit. */

import {
  type Paint,
  paintColour,
  paintPlain,
  type Style,
} from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { cutToWidth, measureWidth, padToWidth, wrapText } from "#delivery/rules/message/text-width.ts";
import { shortenText } from "#lib/text.ts";
import { toDay } from "#model/horizon.ts";
import type { ArchivedEvent } from "#model/waf-event.ts";
import type { StoreIo } from "../store/store-command.ts";

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

/** Returns a function that returns an event as a line, preceded by a line with the day whenever the day changes. */
export function createEventPrinter(io: Pick<StoreIo, "stdout">) {
  const paint = pickPaint(io);
  let shownDay = "";
  return (zoneId: number, event: ArchivedEvent): string => {
    const day = toDay(event.occurredAt);
    const head = day === shownDay ? "" : `${paint("dim", `${day} UTC`)}\n`;
    shownDay = day;
    const line = describeEvent(zoneId, event, paint);
    const cut = io.stdout.isTTY === true ? cutLine(line, io.stdout.columns ?? 80) : line;
    return `${head}${cut}\n`;
  };
}

const MAX_TEXT_CHARS = 300;
const STYLES: Readonly<Record<string, Style>> = { block: "red", challenge: "yellow", log: "cyan" };

/** Returns an event as one line, without the "https://" of its URL. Its texts are attack payloads: every control character is spelled out. */
function describeEvent(zoneId: number, { occurredAt, fields, message }: ArchivedEvent, paint: Paint): string {
  const { action, ruleId, ip, country, url, ua } = fields;
  const show = (text: string) => shortenText(text, MAX_TEXT_CHARS);
  const pad = (text: string, columns: number) => padToWidth(show(text), columns);
  return [
    paint("dim", new Date(occurredAt).toISOString().slice(11, 23)),
    String(zoneId),
    paint(STYLES[action] ?? "bold", pad(action, 9)),
    pad(ruleId, 8),
    pad(ip, 15),
    pad(country, 2),
    show(url.replace(/^https:\/\//, "")),
    paint(
      "dim",
      [message, ua]
        .filter((text) => text !== "")
        .map(show)
        .join("  "),
    ),
  ]
    .join(" ")
    .trimEnd();
}

// oxlint-disable-next-line no-control-regex -- the styles that Paint writes begin with this character
const STYLE = /(\u001b\[[\d;]*m)/;

/** Returns a line of plain or painted text cut to `columns`, with its styles reset. */
export function cutLine(line: string, columns: number): string {
  let left = columns;
  return line
    .split(STYLE)
    .map((part) => {
      if (STYLE.test(part)) return part;
      const shown = left <= 0 ? "" : cutToWidth(part, left);
      left -= measureWidth(part);
      return shown;
    })
    .join("");
}

/** Returns colours only for a terminal that has them. `hasColors` respects NO_COLOR and TERM. */
export function pickPaint({ stdout }: Pick<StoreIo, "stdout">): Paint {
  return stdout.isTTY === true && stdout.hasColors?.() !== false ? paintColour : paintPlain;
}
