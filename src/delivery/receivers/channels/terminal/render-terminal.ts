import {
  describeBriefly,
  describeReason,
  TOP_KEYS,
  TOP_LABELS,
} from "#delivery/rules/message/describe-alert.ts";
import { type Block, type Document, describeTopValue, toDocument } from "#delivery/rules/message/document.ts";
import { partMembers, showsMembers } from "#delivery/rules/message/group-members.ts";
import { cutToWidth, measureWidth, padToWidth, wrapText } from "#delivery/rules/message/text-width.ts";
import { leaveOut, toParagraphs, toPlain } from "#delivery/rules/message/write-document.ts";
import { formatNumber, formatShare } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { isEnding } from "#model/words.ts";
import type { Paint, Style } from "./terminal-style.ts";

const MAX_COLUMNS = 100;
const MIN_COLUMNS = 40;
const TOP_ROWS = 3;
const LABEL_COLUMNS = 12;
const BAR_COLUMNS = 12;
const LABEL_LIMIT = 30;
export const MEMBER_ROWS = 10;
const MEMBER_ROOM = { rows: MEMBER_ROWS, rowChars: 160, chars: 1_500 } as const;
const REST_ROOM = { chars: 200_000, lineChars: 800, most: 1 } as const;
const CAPS = { headline: 400, verdict: 400, advice: { maxLines: 12, maxChars: 1_200 } };

const BADGES: Readonly<Record<AlertMessage["severity"], Style>> = {
  critical: "onRed",
  error: "onRed",
  warning: "onYellow",
  info: "onCyan",
};

export interface TerminalOptions {
  readonly columns: number;
  readonly paint: Paint;
  /** The command that starts the program for the reader. Default `longwatch`. */
  readonly command?: string;
  /** The console's address if it is of use for the reader of the terminal only, without a slash at its end. */
  readonly localUrl?: string | null;
}

interface Page {
  readonly paint: Paint;
  /** Number of columns between the frame's left edge and the right margin. */
  readonly columns: number;
}

function renderTop(message: AlertMessage, { paint, columns }: Page): string[] {
  const barColumns = columns < 70 ? 0 : BAR_COLUMNS;
  const valueColumns = columns - LABEL_COLUMNS - 16 - (barColumns + 1);
  return TOP_KEYS.flatMap((key) =>
    message.top[key].slice(0, TOP_ROWS).map(({ value, count, share }, row) => {
      const label = padToWidth(row === 0 ? TOP_LABELS[key] : "", LABEL_COLUMNS);
      const shown = padToWidth(
        cutToWidth(describeTopValue(key, value, valueColumns), valueColumns),
        valueColumns,
      );
      const bar = "█".repeat(Math.round(share * barColumns));
      const numbers = `${formatNumber(count).padStart(9)} ${formatShare(share).padStart(6)}`;
      return `${paint("dim", label)}${shown}${numbers}${bar === "" ? "" : ` ${paint("cyan", bar)}`}`;
    }),
  );
}

/** Returns the lines of a block, wrapped, with its heading. */
function renderBlock(block: Block, { paint, columns }: Page): string[] {
  const { name, heading, lines } = block;
  const texts = toPlain(block);
  if (name === "curve") return texts.map((curve) => paint("yellow", curve.slice(-columns)));
  if (name === "verdict") {
    return texts.flatMap((text, index) => {
      const [first = "", ...others] = wrapText(text, columns);
      return [first.replace(lines[index]?.[0]?.text ?? "", (label) => paint("bold", label)), ...others];
    });
  }
  const indent = name === "advice" ? "  " : "";
  const wrapped = texts.flatMap((text) => wrapText(text, columns - indent.length));
  if (name === "headline") return wrapped.map((line) => paint("bold", line));
  const above = heading === "" ? [] : [paint("bold", cutToWidth(heading, columns))];
  return [...above, ...wrapped.map((line) => `${indent}${line}`)];
}

function renderLinks({ links }: Document, { paint }: Page): string[] {
  // Not cut and not wrapped: half a link leads nowhere.
  return links.map(({ title, href }) => paint("dim", `${cutToWidth(title, LABEL_LIMIT)}: ${href}`));
}

/** Returns the commands below the frame and each on one line, so that they can be copied in a terminal of any width. */
function renderCommands({ blocks }: Document, { paint }: Page, command: string): string {
  return blocks
    .flatMap(({ name, lines }) => (name === "commands" ? lines : []))
    .map(([label, code]) => `${paint("dim", `${label?.text}:`)}\n${callWith(code?.text ?? "", command)}\n`)
    .join("");
}

/** The program's name in messages. */
const PROGRAM = /^longwatch(?= )/;

function callWith(text: string, command: string): string {
  return text.replace(PROGRAM, () => command);
}

/** Returns the names that do not fit into the frame, to print above it: the frame must stay visible. */
function renderRest(message: AlertMessage, { members }: Document, { paint, columns }: Page): string {
  return partMembers(message, members?.rest ?? [], REST_ROOM)
    .flatMap((part) => [part.title, ...part.lines])
    .flatMap((line) => wrapText(line, columns))
    .map((line) => `${paint("dim", line)}\n`)
    .join("");
}

function frame(
  head: string,
  style: Style,
  parts: readonly (readonly string[])[],
  { paint, columns }: Page,
): string {
  const [badge = "", ...rest] = head.split(" ");
  const title = cutToWidth(rest.join(" "), columns - badge.length - 4);
  const fill = "─".repeat(Math.max(columns - measureWidth(title) - badge.length - 4, 0));
  const bar = paint("dim", "│");
  const body = parts
    .filter((part) => part.length > 0)
    .flatMap((part, index) => (index === 0 ? part : ["", ...part]))
    .map((line) => `${bar} ${line}`.trimEnd());
  const top = `${paint("dim", "╭─")}${paint(style, ` ${badge} `)}${paint("bold", ` ${title} `)}${paint("dim", fill)}`;
  return `${[top, ...body, paint("dim", `╰${"─".repeat(columns + 1)}`)].join("\n")}\n`;
}

/**
 * Returns an alert for a person at a terminal. The frame is open to the right, so that no character's width can break
 * it. Every line fits into `columns` (40 to 100), except for links and the command below the frame. Hostile text is
 * cleaned by `toLine`.
 */
export function renderTerminal(given: AlertMessage, options: TerminalOptions): string {
  const { command = "longwatch", localUrl = null } = options;
  const { howToList } = given;
  const message = howToList === undefined ? given : { ...given, howToList: callWith(howToList, command) };
  const columns = Math.min(Math.max(Math.floor(options.columns), MIN_COLUMNS), MAX_COLUMNS) - 2;
  const page: Page = { paint: options.paint, columns };
  const elsewhere = showsMembers(message) ? "above" : undefined;
  const shown = toDocument(message, "transition", { ...CAPS, members: { ...MEMBER_ROOM, elsewhere } });
  const { subject, status, blocks } = shown;
  const named = (name: Block["name"]) =>
    blocks.flatMap((block) => (block.name === name ? renderBlock(block, page) : []));
  if (isEnding(message.reason)) return renderResolved(message, [...named("facts"), ...named("digest")], page);
  if (status === "advice") {
    return frame(`ADVICE ${subject}`, "onCyan", [[...named("advice"), ...named("facts")]], page);
  }
  const head = `${message.severity.toUpperCase()} ${describeReason(message)} · ${subject}`;
  const parts = [
    ...toParagraphs(leaveOut(shown, "links", "commands")).map((paragraph) =>
      paragraph[0]?.name === "top"
        ? renderTop(message, page)
        : paragraph.flatMap((block) => renderBlock(block, page)),
    ),
    localUrl === null
      ? []
      : [options.paint("dim", `Open in Longwatch: ${localUrl}/alerts/${message.alertId}`)],
    renderLinks(shown, page),
  ];
  const framed = frame(head, BADGES[message.severity], parts, page);
  return `${renderRest(message, shown, page)}${framed}${renderCommands(shown, page, command)}`;
}

function renderResolved(message: AlertMessage, lines: readonly string[], { paint, columns }: Page): string {
  const badge = message.reason === "settled" ? " SETTLED " : " RESOLVED ";
  const brief = toLine(describeBriefly({ ...message, ruleTitle: null }), 400);
  const title = wrapText(brief, columns - badge.length).join("\n  ");
  return `${paint("onGreen", badge)} ${title}\n${lines.map((line) => `  ${line}\n`).join("")}`;
}
