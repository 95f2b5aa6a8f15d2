import { formatNumber, formatShare } from "#lib/format.ts";
import { toLine, toLines } from "#lib/plain-text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import {
  ADVICE_HEADING,
  describeActions,
  describeAdvice,
  describeBriefly,
  describeCount,
  describeCourse,
  describeEnd,
  describeMissingAdvice,
  describeReason,
  describeSince,
  describeSubject,
  isAdvised,
  TOP_KEYS,
  TOP_LABELS,
} from "../../message/describe-alert.ts";
import { describeMembers } from "../../message/describe-digest.ts";
import { describeTopValue } from "../../message/describe-top-value.ts";
import { outlineCommands, outlineVerdict } from "../../message/describe-verdict.ts";
import { drawSparkline } from "../../message/draw-sparkline.ts";
import { outlineMembers, partMembers, showsMembers } from "../../message/group-members.ts";
import { outlineDetails } from "../../message/outline-alert.ts";
import { toSafeLinks } from "../../message/safe-link.ts";
import { cutToWidth, measureWidth, padToWidth, wrapText } from "../../message/text-width.ts";
import type { Paint, Style } from "./terminal-style.ts";

const MAX_COLUMNS = 100;
const MIN_COLUMNS = 40;
const TOP_ROWS = 3;
const LABEL_COLUMNS = 12;
const BAR_COLUMNS = 12;
const LABEL_LIMIT = 30;
const DIGEST_LINE_CHARS = 600;
export const MEMBER_ROWS = 10;
const MEMBER_ROOM = { rows: MEMBER_ROWS, rowChars: 160, chars: 1_500 } as const;
const REST_ROOM = { chars: 200_000, lineChars: 800, most: 1 } as const;
const VERDICT_CHARS = 400;
const ADVICE_LIMITS = { maxLines: 12, maxChars: 1_200 };

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

function renderAdvice(message: AlertMessage, { paint, columns }: Page): string[] {
  const missing = describeMissingAdvice(message);
  if (missing !== null) return wrapText(toLine(`${ADVICE_HEADING.split(" (")[0]}: ${missing}`, 300), columns);
  const lines = toLines(describeAdvice(message), ADVICE_LIMITS);
  const text = lines.flatMap((line) => wrapText(line, columns - 2)).map((line) => `  ${line}`);
  return [paint("bold", cutToWidth(ADVICE_HEADING, columns)), ...text];
}

function renderLinks(message: AlertMessage, { paint }: Page): string[] {
  // Not cut and not wrapped: half a link leads nowhere.
  return toSafeLinks(message.links).map(({ title, href }) =>
    paint("dim", `${cutToWidth(title, LABEL_LIMIT)}: ${href}`),
  );
}

function renderVerdict(message: AlertMessage, { paint, columns }: Page): string[] {
  return outlineVerdict(message, VERDICT_CHARS).flatMap(({ label, text }) =>
    wrapText(`${label}: ${text}`, columns).map((line, index) =>
      index === 0 && line.startsWith(label) ? `${paint("bold", label)}${line.slice(label.length)}` : line,
    ),
  );
}

/** Returns the commands below the frame and each on one line, so that they can be copied in a terminal of any width. */
function renderCommands(message: AlertMessage, { paint }: Page, command: string): string {
  return outlineCommands(message)
    .map(({ label, text }) => `${paint("dim", `${label}:`)}\n${toLine(callWith(text, command), 400)}\n`)
    .join("");
}

/** The program's name in messages. Messages of earlier versions contain the npm script. */
const PROGRAM = /^(?:npm run -s longwatch --|longwatch)(?= )/;

function callWith(text: string, command: string): string {
  return text.replace(PROGRAM, () => command);
}

function renderDigest({ digest }: AlertMessage, columns: number): string[] {
  return describeMembers(digest, DIGEST_LINE_CHARS).flatMap((line) => wrapText(toLine(line, 1_000), columns));
}

function outlineRules(message: AlertMessage) {
  const elsewhere = showsMembers(message) ? { elsewhere: "above" } : {};
  return outlineMembers(message, { ...MEMBER_ROOM, ...elsewhere });
}

function renderMembers(message: AlertMessage, { paint, columns }: Page): string[] {
  const members = outlineRules(message);
  if (members === null) return [];
  const { heading, rows, others, more } = members;
  const lines = [...rows, ...others, ...(more === null ? [] : [more])];
  return [paint("bold", heading), ...lines.flatMap((line) => wrapText(line, columns))];
}

/** Returns the names that do not fit into the frame, to print above it: the frame must stay visible. */
function renderRest(message: AlertMessage, { paint, columns }: Page): string {
  const rest = outlineRules(message)?.rest ?? [];
  const lines = partMembers(message, rest, REST_ROOM).flatMap((part) => [part.title, ...part.lines]);
  return lines
    .flatMap((line) => wrapText(line, columns))
    .map((line) => `${paint("dim", line)}\n`)
    .join("");
}

function renderCounts(message: AlertMessage, { paint, columns }: Page): string[] {
  const phrase = describeCount(message);
  const course = wrapText(describeCourse(message), columns);
  if (phrase === null) return course;
  const times = phrase.times === null ? "" : ` (${phrase.times})`;
  const text = `${phrase.count} ${phrase.against}${times}`;
  const beside = columns - measureWidth(text) - 3;
  const sparkline = paint("yellow", drawSparkline(message.sparkline, beside < 12 ? columns : beside));
  const painted = `${paint("bold", phrase.count)} ${phrase.against}${paint("bold", times)}`;
  const count = beside < -3 ? wrapText(text, columns) : [painted];
  const isBeside = message.sparkline.length > 0 && beside >= 12;
  return [
    ...(isBeside ? [`${painted}   ${sparkline}`] : count),
    ...(isBeside || message.sparkline.length === 0 ? [] : [sparkline]),
    ...course,
    ...wrapText(describeActions(message), columns),
    ...outlineDetails(message).flatMap((line) => wrapText(line, columns)),
  ];
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
  const { command = "longwatch" } = options;
  const { howToList } = given;
  const message = howToList === undefined ? given : { ...given, howToList: callWith(howToList, command) };
  const columns = Math.min(Math.max(Math.floor(options.columns), MIN_COLUMNS), MAX_COLUMNS) - 2;
  const page: Page = { paint: options.paint, columns };
  const subject = toLine(describeSubject(message), 200);
  if (message.reason === "resolved") return renderResolved(message, page);
  if (message.reason === "advice") {
    const when = wrapText(describeSince(message), columns);
    return frame(`ADVICE ${subject}`, "onCyan", [[...renderAdvice(message, page), ...when]], page);
  }
  const head = `${message.severity.toUpperCase()} ${describeReason(message)} · ${subject}`;
  const headline = wrapText(toLine(message.headline, 400), columns).map((line) => page.paint("bold", line));
  const facts = [...headline, ...renderCounts(message, page)];
  const advice = isAdvised(message) ? renderAdvice(message, page) : [];
  const parts = [
    renderVerdict(message, page),
    facts,
    renderMembers(message, page),
    renderDigest(message, columns),
    renderTop(message, page),
    advice,
    renderLinks(message, page),
  ];
  const framed = frame(head, BADGES[message.severity], parts, page);
  return `${renderRest(message, page)}${framed}${renderCommands(message, page, command)}`;
}

function renderResolved(message: AlertMessage, { paint, columns }: Page): string {
  const title = cutToWidth(toLine(describeBriefly({ ...message, ruleTitle: null }), 400), columns - 9);
  const named = renderDigest(message, columns).map((line) => `  ${line}\n`);
  return `${paint("onGreen", " RESOLVED ")} ${title}\n  ${cutToWidth(describeEnd(message), columns)}\n${named.join("")}`;
}
