/** The channel of Slack, and an alert as its blocks. */

import { type Document, toDocument } from "#delivery/rules/message/document.ts";
import { partMembers, showsMembers } from "#delivery/rules/message/group-members.ts";
import { type Dialect, fit, type WrittenBlock } from "#delivery/rules/message/write-document.ts";
import { countCharacters, joinWithin, toLine, toLines } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import {
  defineChannel,
  type Notifier,
  networkSettings,
  type SenderOptions,
  secretText,
} from "../../channel-definition.ts";
import { openEndpoint } from "../../endpoint.ts";
import { postParts } from "../../post.ts";

/**
 * Slack's limits in characters: header 150, section 3000, field 2000, 50 blocks (docs.slack.dev, Block Kit reference).
 * Messages over about 13,000 characters in all blocks are reported to fail.
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

const SIGNS: Readonly<Record<AlertMessage["severity"], string>> = {
  critical: "🔴",
  error: "🟠",
  warning: "🟡",
  info: "🔵",
};

const measureMrkdwn = (text: string) => countCharacters(toMrkdwn(text, SLACK_LIMITS.section));
export const MEMBER_ROWS = 8;
const MEMBER_ROOM = { rows: MEMBER_ROWS, rowChars: 110, chars: 900, measure: measureMrkdwn } as const;
/** Number of sections with names in one further message. More would exceed the limit over all blocks. */
const PART_SECTIONS = 4;
const PART_LINE_CHARS = 2_800;
const PART_ROOM = {
  chars: PART_SECTIONS * (PART_LINE_CHARS + 1),
  lineChars: PART_LINE_CHARS,
  measure: measureMrkdwn,
} as const;
const CAPS = { title: 100, verdict: 200, facts: 250, commands: 400, top: 120 } as const;
const ADVICE = { maxLines: 30, maxChars: 2_800 } as const;
/** The advice below a verdict, which knows more than the rule. */
const ADVICE_BESIDE = { ...ADVICE, maxChars: 600 } as const;
/** Maximum length of an escaped link. Half a link leads nowhere: a longer one is left out. */
const MAX_LINK_CHARS = 1_000;

const MRKDWN: Dialect = {
  label: (text) => `*${text}*: `,
  own: (text) => text,
  text: toMrkdwn,
  code: toMrkdwnCode,
  link: (text, cap, href) => `<${href.replaceAll("&", "&amp;")}|${toMrkdwn(text, cap)}>`,
};

function toBlocks(paragraph: readonly WrittenBlock[]): SlackBlock[] {
  const texts = paragraph.map(({ heading, written }) => [
    ...(heading === "" ? [] : [`*${heading}*`]),
    ...written.map((pieces) => pieces.join("")),
  ]);
  const [first] = paragraph;
  if (first?.name === "top")
    return [{ type: "section", fields: texts.map((lines) => mrkdwn(lines.join("\n"))) }];
  if (first?.name === "commands") return [{ type: "context", elements: texts.flat().map(mrkdwn) }];
  // Links are text, because Slack shows a warning for a button whose clicks no app handles.
  if (first?.name === "links") {
    return packSections(
      texts.flat().filter((link) => link.length <= MAX_LINK_CHARS),
      " · ",
    );
  }
  if (first?.name !== "advice") return packSections(texts.flat(), "\n");
  const text = first.lines.map(([run]) => run?.text ?? "").join("\n");
  return [section(`*${first.heading}*\n${toMrkdwnQuote(text, { ...ADVICE, maxChars: first.cap })}`)];
}

function measure({ text, blocks }: SlackMessage): number {
  const texts = blocks.flatMap((block) => {
    const shown = "text" in block ? [block.text] : "fields" in block ? block.fields : block.elements;
    return shown.map((one) => one.text);
  });
  return countCharacters([text, ...texts].join(""));
}

function open(message: AlertMessage, view: "transition" | "whole", elsewhere?: string): Document {
  const advice = message.verdict === undefined ? ADVICE : ADVICE_BESIDE;
  return toDocument(message, view, { ...CAPS, advice, members: { ...MEMBER_ROOM, elsewhere } });
}

function render(message: AlertMessage, document: Document): SlackMessage {
  const { status, statusText, subject, brief } = document;
  const sign = status === "resolved" ? "✅" : status === "advice" ? "💡" : SIGNS[message.severity];
  const write = (paragraphs: WrittenBlock[][]) => ({
    text: `${sign} ${statusText}: ${toMrkdwn(brief, 400)}`,
    blocks: [header(`${sign} ${statusText} · ${subject}`), ...paragraphs.flatMap(toBlocks)],
  });
  return fit(document, MRKDWN, write, (written) => measure(written) - SLACK_LIMITS.total);
}

/** Returns an alert as Block Kit. Hostile text is escaped, and only the message's own links are live. */
export function toSlackMessage(message: AlertMessage): SlackMessage {
  return render(
    message,
    open(message, "transition", showsMembers(message) ? "in the next messages" : undefined),
  );
}

/** Returns all that is known of an alert as one message, for a channel that updates it in place. */
export function toWholeSlackMessage(message: AlertMessage): SlackMessage {
  return render(message, open(message, "whole", "in the thread"));
}

/** Returns further messages with the names of the rules that do not fit into the message itself. */
export function toSlackParts(message: AlertMessage): readonly SlackMessage[] {
  const rest = open(message, "transition").members?.rest ?? [];
  return partMembers(message, rest, PART_ROOM).map(({ title, lines }) => ({
    text: title,
    blocks: [section(`*${title}*`), ...lines.map((line) => section(toMrkdwn(line, SLACK_LIMITS.section)))],
  }));
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

export const NO_PREVIEWS = { unfurl_links: false, unfurl_media: false, mrkdwn: false };

const settings = {
  /** The URL of an incoming webhook. Anyone with the URL can post. */
  url: secretText,
  ...networkSettings,
};

type Options = SenderOptions<typeof settings>;

/** Returns the message that the channel shows, and further messages for the rules that do not fit into it. */
function renderSlack(message: AlertMessage) {
  return [toSlackMessage(message), ...toSlackParts(message)];
}

/**
 * Sends to Slack's incoming webhook, which cannot edit and has no idempotency key: after a lost reply the channel shows
 * the message twice. A long list of rules follows in further messages.
 * @throws {UsageError} for a bad URL
 */
function createSender(options: Options): Notifier["send"] {
  const endpoint = openEndpoint(options.name, options.url, options.network ?? {});
  const confirms = ({ body }: { readonly body: string }) => body.trim() === "ok";
  return async (message, sending) => {
    const bodies = renderSlack(message).map((part) => JSON.stringify({ ...part, ...NO_PREVIEWS }));
    return postParts(
      bodies.map((body) => ({ endpoint, body, confirms })),
      options,
      sending,
    );
  };
}

export const slack = defineChannel({
  kind: "slack",
  settings,
  example: { url: "https://hooks.slack.example/services/T0/B0/example-path" },
  capabilities: {
    rate: { perMinute: 30, digest: { in: "list", maxChars: 9_000, charsBeside: 2 } },
    longestPauseMs: 2 * 60_000,
    laterTransitions: "post-anew",
    showsAcknowledgements: false,
    renewAfterMs: null,
    limits: { message: { most: SLACK_LIMITS.total, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
  render: renderSlack,
  createSender,
});
