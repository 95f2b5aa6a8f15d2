/** The channel of Slack, and an alert as its blocks. */

import { type Document, toDocument } from "#delivery/rules/message/document.ts";
import { partMembers, showsMembers } from "#delivery/rules/message/group-members.ts";
import {
  BACKTICK,
  type Dialect,
  escapeWithin,
  fit,
  quoteWithin,
  type WrittenBlock,
} from "#delivery/rules/message/write-document.ts";
import { countCharacters, packWithin, toLine, toLines } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { defineChannel, POSTED_CHAT, secretText, textSettings } from "../../channel-definition.ts";
import { createPoster } from "../../post.ts";

/**
 * Slack's limits in characters: header 150, section 3000, field 2000, 50 blocks (docs.slack.dev, Block Kit reference).
 * Messages over about 13,000 characters in all blocks are reported to fail.
 */
export const SLACK_LIMITS = { header: 150, section: 3_000, field: 2_000, blocks: 50, total: 13_000 } as const;

/** `verbatim` prevents Slack from finding links and names on its own. */
const mrkdwn = (text: string) => ({ type: "mrkdwn", text, verbatim: true }) as const;

const section = (text: string) => ({ type: "section", text: mrkdwn(text) }) as const;

/** Escapes hostile text for a plain_text object, which formats nothing but may decode entities. No entity is left. */
function header(text: string) {
  const line = toLine(text, SLACK_LIMITS.header);
  const plain = escapeWithin(line, SLACK_LIMITS.header, (one) => PLAIN_LOOKALIKES[one] ?? one);
  return { type: "header", text: { type: "plain_text", text: plain, emoji: false } } as const;
}

type MrkdwnText = ReturnType<typeof mrkdwn>;
type SlackBlock =
  | ReturnType<typeof header | typeof section>
  | { readonly type: "section"; readonly fields: readonly MrkdwnText[] }
  | { readonly type: "context"; readonly elements: readonly MrkdwnText[] };

export interface SlackMessage {
  /** Shown in notifications and by clients without blocks. */
  readonly text: string;
  readonly blocks: readonly SlackBlock[];
}

/** Joins whole pieces into as few sections as possible. No section exceeds its limit. */
function packSections(pieces: readonly string[], separator: string): SlackBlock[] {
  const [most, beside] = [SLACK_LIMITS.section + separator.length, separator.length];
  return packWithin(pieces, most, ({ length }) => length + beside).map((some) =>
    section(some.join(separator)),
  );
}

const SIGNS = { critical: "🔴", error: "🟠", warning: "🟡", info: "🔵" } as const;

const measureMrkdwn = (text: string) => countCharacters(toMrkdwn(text, SLACK_LIMITS.section));
export const MEMBER_ROWS = 8;
const MEMBER_ROOM = { rows: MEMBER_ROWS, rowChars: 110, chars: 900, measure: measureMrkdwn } as const;
/** Four sections with names in one further message. More would exceed the limit over all blocks. */
const PART_ROOM = { chars: 4 * 2_801, lineChars: 2_800, measure: measureMrkdwn } as const;
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
  const lines = texts.flat();
  const [first] = paragraph;
  if (first?.name === "top")
    return [{ type: "section", fields: texts.map((some) => mrkdwn(some.join("\n"))) }];
  if (first?.name === "commands") return [{ type: "context", elements: lines.map(mrkdwn) }];
  // Links are text, because Slack shows a warning for a button whose clicks no app handles.
  const links = lines.filter(({ length }) => length <= MAX_LINK_CHARS);
  if (first?.name === "links") return packSections(links, " · ");
  if (first?.name !== "advice") return packSections(lines, "\n");
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
  const elsewhere = showsMembers(message) ? "in the next messages" : undefined;
  return render(message, open(message, "transition", elsewhere));
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
/** Entities, and look-alikes without a meaning for the formatting characters of mrkdwn. */
const PROSE: Readonly<Record<string, string>> = { ...ENTITIES, "*": "∗", _: "ˍ", "~": "∼", "`": BACKTICK };
const PLAIN_LOOKALIKES: Readonly<Record<string, string>> = { "&": "＆", "<": "‹", ">": "›" };
/** Prevents Slack from interpreting `@channel`, `#general` and `:smile:`. */
const MENTIONS = /([@#])(?=[\p{L}\p{N}_])|:(?=[\w+-]+:)/gu;

const escapeProse = (character: string) => PROSE[character] ?? character;
const unmention = (line: string) => line.replace(MENTIONS, (mark) => `${mark}\u2060`);

/**
 * Escapes hostile prose for a mrkdwn text: one line that cannot format, link or mention, of at most `maxChars` code
 * points.
 */
export function toMrkdwn(text: string, maxChars: number): string {
  return escapeWithin(unmention(toLine(text, maxChars)), maxChars, escapeProse);
}

/** Escapes hostile text and quotes it line by line. */
export function toMrkdwnQuote(text: string, limits: { maxLines: number; maxChars: number }): string {
  return quoteWithin(toLines(text, limits).map(unmention), limits.maxChars, escapeProse);
}

/** Escapes a hostile value for a code span. Only the backtick, which would end the span, is replaced. */
export function toMrkdwnCode(text: string, maxChars: number): string {
  const escape = (character: string) => (character === "`" ? BACKTICK : (ENTITIES[character] ?? character));
  return `\`${escapeWithin(toLine(text, maxChars) || "-", maxChars - 2, escape)}\``;
}

export const NO_PREVIEWS = { unfurl_links: false, unfurl_media: false, mrkdwn: false };

/** Returns the message that the channel shows, and further messages for the rules that do not fit into it. */
function renderSlack(message: AlertMessage) {
  return [toSlackMessage(message), ...toSlackParts(message)];
}

/**
 * Slack's incoming webhook, which cannot edit and has no idempotency key: after a lost reply the channel shows the message
 * twice. A long list of rules follows in further messages.
 */
export const slack = defineChannel({
  kind: "slack",
  settings: {
    /** The URL of an incoming webhook. Anyone with the URL can post. */
    url: secretText,
    ...textSettings,
  },
  example: { url: "https://hooks.slack.example/services/T0/B0/example-path" },
  capabilities: {
    ...POSTED_CHAT,
    rate: { perMinute: 30, digest: { in: "list", maxChars: 9_000, charsBeside: 2 } },
    limits: { message: { most: SLACK_LIMITS.total, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
  render: renderSlack,
  createSender: createPoster(
    (message) => renderSlack(message).map((part) => ({ ...part, ...NO_PREVIEWS })),
    ({ body }) => body.trim() === "ok",
  ),
});
