import {
  describeBriefly,
  describeReason,
  TOP_KEYS,
  TOP_LABELS,
} from "#delivery/rules/message/describe-alert.ts";
import { partMembers, showsMembers } from "#delivery/rules/message/group-members.ts";
import { FULL_CAPS, type Outline, outlineAlert } from "#delivery/rules/message/outline-alert.ts";
import { describeTopValue, toLabelled } from "#delivery/rules/message/outline-lines.ts";
import { cutToWidth, measureWidth, padToWidth, wrapText } from "#delivery/rules/message/text-width.ts";
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
const CAPS = { ...FULL_CAPS, headline: 400, verdict: 400, advice: { maxLines: 12, maxChars: 1_200 } };

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

function renderAdvice({ advice }: Outline, { paint, columns }: Page): string[] {
  if (advice === null) return [];
  const text = advice.lines.flatMap((line) => wrapText(line, columns - 2)).map((line) => `  ${line}`);
  return [paint("bold", cutToWidth(advice.heading, columns)), ...text];
}

function renderLinks({ links }: Outline, { paint }: Page): string[] {
  // Not cut and not wrapped: half a link leads nowhere.
  return links.map(({ title, href }) => paint("dim", `${cutToWidth(title, LABEL_LIMIT)}: ${href}`));
}

function renderVerdict({ verdict }: Outline, { paint, columns }: Page): string[] {
  return verdict.flatMap((row) => {
    const [first = "", ...others] = wrapText(toLabelled(row), columns);
    return [first.replace(row.label, (label) => paint("bold", label)), ...others];
  });
}

/** Returns the commands below the frame and each on one line, so that they can be copied in a terminal of any width. */
function renderCommands({ commands }: Outline, { paint }: Page, command: string): string {
  return commands
    .map(({ label, text }) => `${paint("dim", `${label}:`)}\n${callWith(text, command)}\n`)
    .join("");
}

/** The program's name in messages. */
const PROGRAM = /^longwatch(?= )/;

function callWith(text: string, command: string): string {
  return text.replace(PROGRAM, () => command);
}

function outline(message: AlertMessage): Outline {
  const elsewhere = showsMembers(message) ? { elsewhere: "above" } : {};
  return outlineAlert(message, "transition", { ...CAPS, members: { ...MEMBER_ROOM, ...elsewhere } });
}

function renderDigest({ digest }: Outline, columns: number): string[] {
  return digest.flatMap((line) => wrapText(toLine(line, 1_000), columns));
}

function renderMembers({ members }: Outline, { paint, columns }: Page): string[] {
  if (members === null) return [];
  const { heading, rows, others, more } = members;
  const lines = [...rows, ...others, ...(more === null ? [] : [more])];
  return [paint("bold", heading), ...lines.flatMap((line) => wrapText(line, columns))];
}

/** Returns the names that do not fit into the frame, to print above it: the frame must stay visible. */
function renderRest(message: AlertMessage, { paint, columns }: Page): string {
  const rest = outline(message).members?.rest ?? [];
  const lines = partMembers(message, rest, REST_ROOM).flatMap((part) => [part.title, ...part.lines]);
  return lines
    .flatMap((line) => wrapText(line, columns))
    .map((line) => `${paint("dim", line)}\n`)
    .join("");
}

function renderFacts({ headline, sparkline, facts, details }: Outline, { paint, columns }: Page): string[] {
  return [
    ...wrapText(headline, columns).map((line) => paint("bold", line)),
    ...(sparkline === "" ? [] : [paint("yellow", sparkline.slice(-columns))]),
    ...[...facts, ...details].flatMap((line) => wrapText(line, columns)),
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
  const { command = "longwatch", localUrl = null } = options;
  const { howToList } = given;
  const message = howToList === undefined ? given : { ...given, howToList: callWith(howToList, command) };
  const columns = Math.min(Math.max(Math.floor(options.columns), MIN_COLUMNS), MAX_COLUMNS) - 2;
  const page: Page = { paint: options.paint, columns };
  const shown = outline(message);
  const { subject, status } = shown;
  if (isEnding(message.reason)) return renderResolved(message, shown, page);
  if (status === "advice") {
    return frame(
      `ADVICE ${subject}`,
      "onCyan",
      [[...renderAdvice(shown, page), ...shown.facts.flatMap((line) => wrapText(line, columns))]],
      page,
    );
  }
  const head = `${message.severity.toUpperCase()} ${describeReason(message)} · ${subject}`;
  const parts = [
    renderVerdict(shown, page),
    renderFacts(shown, page),
    renderMembers(shown, page),
    renderDigest(shown, columns),
    renderTop(message, page),
    renderAdvice(shown, page),
    localUrl === null
      ? []
      : [options.paint("dim", `Open in Longwatch: ${localUrl}/alerts/${message.alertId}`)],
    renderLinks(shown, page),
  ];
  const framed = frame(head, BADGES[message.severity], parts, page);
  return `${renderRest(message, page)}${framed}${renderCommands(shown, page, command)}`;
}

function renderResolved(message: AlertMessage, shown: Outline, { paint, columns }: Page): string {
  const badge = message.reason === "settled" ? " SETTLED " : " RESOLVED ";
  const brief = toLine(describeBriefly({ ...message, ruleTitle: null }), 400);
  const title = wrapText(brief, columns - badge.length).join("\n  ");
  const named = renderDigest(shown, columns).map((line) => `  ${line}\n`);
  return `${paint("onGreen", badge)} ${title}\n  ${cutToWidth(shown.facts.join(""), columns)}\n${named.join("")}`;
}
