/** An alert as blocks of Slack. */

import type { OutlineRow } from "#delivery/rules/message/describe-verdict.ts";
import { partMembers, showsMembers } from "#delivery/rules/message/group-members.ts";
import { FULL_CAPS, type Outline, outlineAlert } from "#delivery/rules/message/outline-alert.ts";
import { joinWithin, toLine, toLines } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";

/**
 * Slack's limits in characters: header 150, section 3000, field 2000, 50 blocks (docs.slack.dev, Block Kit reference).
 * Messages over about 13,000 characters in all blocks are reported to fail. The budgets below add up to less, for every
 * message.
 */
export const SLACK_LIMITS = { header: 150, section: 3_000, field: 2_000, blocks: 50, total: 13_000 } as const;

interface MrkdwnText {
  readonly type: "mrkdwn";
  readonly text: string;
  /** Prevents Slack from finding links and names on its own. */
  readonly verbatim: true;
}

type SlackBlock =
  | { readonly type: "header"; readonly text: { type: "plain_text"; text: string; emoji: false } }
  | { readonly type: "section"; readonly text: MrkdwnText }
  | { readonly type: "section"; readonly fields: readonly MrkdwnText[] }
  | { readonly type: "context"; readonly elements: readonly MrkdwnText[] };

export interface SlackMessage {
  /** Shown in notifications and by clients without blocks. */
  readonly text: string;
  readonly blocks: readonly SlackBlock[];
}

function mrkdwn(text: string): MrkdwnText {
  return { type: "mrkdwn", text, verbatim: true };
}

function section(text: string): SlackBlock {
  return { type: "section", text: mrkdwn(text) };
}

function header(text: string): SlackBlock {
  return {
    type: "header",
    text: { type: "plain_text", text: toSlackPlain(text, SLACK_LIMITS.header), emoji: false },
  };
}

/** Joins whole pieces into as few sections as possible. No section exceeds its limit. */
function packSections(pieces: readonly string[], separator: string): SlackBlock[] {
  const texts: string[] = [];
  for (const piece of pieces) {
    const last = texts.at(-1);
    const isFull = last === undefined || last.length + separator.length + piece.length > SLACK_LIMITS.section;
    if (isFull) texts.push(piece);
    else texts[texts.length - 1] = `${last}${separator}${piece}`;
  }
  return texts.map(section);
}

const VALUE_CHARS = 120;
const VERDICT_CHARS = 200;
const DETAIL_CHARS = 250;
const ADVICE_CHARS = 2_800;
/** Maximum length of the advice below a verdict, which knows more than the rule. */
const ADVICE_CHARS_BESIDE = 600;
const COMMAND_CHARS = 400;
const LINK_TITLE_CHARS = 80;
/** Maximum length of an escaped link. Five links of this length fit besides everything else. */
const MAX_LINK_CHARS = 1_000;

const SIGNS: Readonly<Record<AlertMessage["severity"], string>> = {
  critical: "🔴",
  error: "🟠",
  warning: "🟡",
  info: "🔵",
};

const measureMrkdwn = (text: string) => Array.from(toMrkdwn(text, SLACK_LIMITS.section)).length;
export const MEMBER_ROWS = 8;
const MEMBER_ROW_CHARS = 120;
const MAX_MORE_CHARS = 300;
const MEMBER_ROOM = { rows: MEMBER_ROWS, rowChars: 110, chars: 900, measure: measureMrkdwn } as const;
/** Number of sections with names in one further message. More would exceed the limit over all blocks. */
const PART_SECTIONS = 4;
const PART_LINE_CHARS = 2_800;
const PART_ROOM = {
  chars: PART_SECTIONS * (PART_LINE_CHARS + 1),
  lineChars: PART_LINE_CHARS,
  measure: measureMrkdwn,
} as const;

function outline(message: AlertMessage, view: "transition" | "whole", elsewhere: string | null): Outline {
  const members = elsewhere === null ? MEMBER_ROOM : { ...MEMBER_ROOM, elsewhere };
  const maxChars = message.verdict === undefined ? ADVICE_CHARS : ADVICE_CHARS_BESIDE;
  const advice = { maxLines: 30, maxChars };
  return outlineAlert(message, view, { ...FULL_CAPS, title: 100, verdict: VERDICT_CHARS, advice, members });
}

function renderRow({ label, text, isCode = false }: OutlineRow, maxChars: number): string {
  return `*${label}*: ${isCode ? toMrkdwnCode(text, maxChars) : toMrkdwn(text, maxChars)}`;
}

function renderFacts({ headline, sparkline, facts, details }: Outline): SlackBlock[] {
  const lines = [
    toMrkdwn(headline, 500),
    sparkline === "" ? "" : `\`${sparkline}\``,
    ...facts,
    ...details.map((line) => toMrkdwn(line, DETAIL_CHARS)),
  ];
  return packSections(
    lines.filter((line) => line !== ""),
    "\n",
  );
}

function renderTop({ top }: Outline): SlackBlock[] {
  const fields = top.map(({ label, rows }) => {
    const lines = rows.map(({ value, count, share }) => {
      return `${toMrkdwnCode(value, VALUE_CHARS)} ${count} (${share})`;
    });
    return mrkdwn([`*${label}*`, ...lines].join("\n"));
  });
  return fields.length === 0 ? [] : [{ type: "section", fields }];
}

function renderAdvice({ advice }: Outline, maxChars: number): SlackBlock[] {
  if (advice === null) return [];
  return [
    section(`*${advice.heading}*\n${toMrkdwnQuote(advice.lines.join("\n"), { maxLines: 30, maxChars })}`),
  ];
}

function renderMembers({ members }: Outline): SlackBlock[] {
  if (members === null) return [];
  const { heading, rows, others, more } = members;
  const lines = [
    `*${heading}*`,
    ...rows.map((row) => toMrkdwn(row, MEMBER_ROW_CHARS)),
    ...others.map((line) => toMrkdwn(line, SLACK_LIMITS.section)),
    ...(more === null ? [] : [toMrkdwn(more, MAX_MORE_CHARS)]),
  ];
  return [section(lines.join("\n"))];
}

/** Returns further messages with the names of the rules that do not fit into the message itself. */
export function toSlackParts(message: AlertMessage): readonly SlackMessage[] {
  const rest = outline(message, "transition", null).members?.rest ?? [];
  return partMembers(message, rest, PART_ROOM).map(({ title, lines }) => ({
    text: title,
    blocks: [section(`*${title}*`), ...lines.map((line) => section(toMrkdwn(line, SLACK_LIMITS.section)))],
  }));
}

/** Returns the links as text, because Slack shows a warning for a button whose clicks no app handles. */
function renderLinks({ links }: Outline): SlackBlock[] {
  // Half a link leads nowhere: one that is too long once escaped is left out.
  const texts = links
    .map(({ title, href }) => `<${href.replaceAll("&", "&amp;")}|${toMrkdwn(title, LINK_TITLE_CHARS)}>`)
    .filter((link) => link.length <= MAX_LINK_CHARS);
  return packSections(texts, " · ");
}

/** Returns no block if there is no command, because Slack refuses an empty block. */
function renderCommands({ commands }: Outline): SlackBlock[] {
  const elements = commands.map((row) => mrkdwn(renderRow(row, COMMAND_CHARS)));
  return elements.length === 0 ? [] : [{ type: "context", elements }];
}

function render(message: AlertMessage, shown: Outline): SlackMessage {
  const { status, statusText, subject, brief, verdict, digest } = shown;
  const sign = status === "resolved" ? "✅" : status === "advice" ? "💡" : SIGNS[message.severity];
  const rows = verdict.map((row) => renderRow(row, VERDICT_CHARS));
  // The digest's own budget is below the limit over all blocks.
  const named = digest.map((line) => toMrkdwn(line, SLACK_LIMITS.section - 200));
  return {
    text: `${sign} ${statusText}: ${toMrkdwn(brief === "" ? subject : brief, 400)}`,
    blocks: [
      header(`${sign} ${statusText} · ${subject}`),
      ...packSections(rows, "\n"),
      ...renderFacts(shown),
      ...renderLinks(shown),
      ...renderCommands(shown),
      ...renderMembers(shown),
      ...packSections(named, "\n"),
      ...renderTop(shown),
      ...renderAdvice(shown, message.verdict === undefined ? ADVICE_CHARS : ADVICE_CHARS_BESIDE),
    ],
  };
}

/** Returns an alert as Block Kit. Hostile text is escaped, and only the message's own links are live. */
export function toSlackMessage(message: AlertMessage): SlackMessage {
  return render(
    message,
    outline(message, "transition", showsMembers(message) ? "in the next messages" : null),
  );
}

/** Returns all that is known of an alert as one message, for a channel that updates it in place. */
export function toWholeSlackMessage(message: AlertMessage): SlackMessage {
  return render(message, outline(message, "whole", "in the thread"));
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
/** Formatting characters of mrkdwn, replaced by characters that look alike and have no meaning. */
const LOOKALIKES: Readonly<Record<string, string>> = { "*": "∗", _: "ˍ", "~": "∼", "`": "ˋ" };
const PLAIN_LOOKALIKES: Readonly<Record<string, string>> = { "&": "＆", "<": "‹", ">": "›" };
/** Prevents Slack from interpreting `@channel`, `#general` and `:smile:`. */
const MENTIONS = /([@#])(?=[\p{L}\p{N}_])|:(?=[\w+-]+:)/gu;

/** Escapes hostile text for a plain_text object, which formats nothing but may decode entities. No entity is left. */
function toSlackPlain(text: string, maxChars: number): string {
  const pieces = Array.from(toLine(text, maxChars), (character) => PLAIN_LOOKALIKES[character] ?? character);
  return joinWithin(pieces, maxChars);
}

function escapeProse(line: string): string[] {
  const unmentioned = line.replace(MENTIONS, (mark) => `${mark}\u2060`);
  return Array.from(unmentioned, (character) => ENTITIES[character] ?? LOOKALIKES[character] ?? character);
}

/**
 * Escapes hostile prose for a mrkdwn text: one line that cannot format, link or mention, of at most `maxChars` code
 * points.
 */
export function toMrkdwn(text: string, maxChars: number): string {
  return joinWithin(escapeProse(toLine(text, maxChars)), maxChars);
}

/** Escapes hostile text and quotes it line by line. */
export function toMrkdwnQuote(text: string, limits: { maxLines: number; maxChars: number }): string {
  const lines = toLines(text, limits);
  const pieces = lines.flatMap((line, index) => [...(index === 0 ? [] : ["\n"]), "> ", ...escapeProse(line)]);
  return joinWithin(pieces, limits.maxChars);
}

/** Escapes a hostile value for a code span. Only the backtick, which would end the span, is replaced. */
export function toMrkdwnCode(text: string, maxChars: number): string {
  const line = toLine(text, maxChars);
  const pieces = Array.from(line === "" ? "-" : line, (character) => {
    return character === "`" ? "ˋ" : (ENTITIES[character] ?? character);
  });
  return `\`${joinWithin(pieces, maxChars - 2)}\``;
}
