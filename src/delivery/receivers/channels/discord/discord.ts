/** The channel of Discord, and an alert as its message. */

import { createHash } from "node:crypto";
import { z } from "zod";
import { describeCount } from "#delivery/rules/message/describe-alert.ts";
import { type Document, toDocument } from "#delivery/rules/message/document.ts";
import { showsMembers, toMembersFile } from "#delivery/rules/message/group-members.ts";
import {
  type Dialect,
  fit,
  needsNotification,
  type WrittenBlock,
} from "#delivery/rules/message/write-document.ts";
import { formatIso } from "#lib/format.ts";
import { countCharacters, joinWithin, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import {
  defineChannel,
  type Notifier,
  networkSettings,
  type SenderOptions,
  secretText,
} from "../../channel-definition.ts";
import { readReply } from "../../delivery-error.ts";
import { extendEndpoint, openEndpoint } from "../../endpoint.ts";
import { POST_TIMEOUT_MS, post, type Reply } from "../../post.ts";

/**
 * Discord's limits in characters; `total` is over all texts of a message's embeds (discord.com/developers, "Embed
 * Limits").
 */
export const DISCORD_LIMITS = {
  content: 2_000,
  title: 256,
  description: 4_096,
  fields: 25,
  fieldName: 256,
  fieldValue: 1_024,
  footer: 2_048,
  total: 6_000,
} as const;
const HEADLINE_CHARS = 600;
const measureDiscord = (text: string) => countCharacters(toDiscord(text, DISCORD_LIMITS.description));
const MEMBER_ROWS = 6;
const CAPS = {
  headline: HEADLINE_CHARS,
  verdict: 140,
  facts: 600,
  commands: 300,
  links: 60,
  top: 60,
  advice: { maxLines: 30, maxChars: 2_000 },
  members: { rows: MEMBER_ROWS, rowChars: 70, chars: 400, measure: measureDiscord, elsewhere: "attached" },
} as const;
const DISCORD_FILE = "rules.txt";

const COLORS: Readonly<Record<AlertMessage["severity"], number>> = {
  critical: 0xd32f2f,
  error: 0xf57c00,
  warning: 0xfbc02d,
  info: 0x1976d2,
};
const GREEN = 0x388e3c;

interface DiscordEmbed {
  readonly title: string;
  readonly url?: string;
  readonly description: string;
  readonly color: number;
  readonly timestamp: string;
  readonly fields: readonly { readonly name: string; readonly value: string; readonly inline: true }[];
}

interface DiscordMessage {
  readonly content: string;
  /** Empty, so that no text can notify anybody. */
  readonly allowed_mentions: { readonly parse: readonly never[] };
  /** The attachments, in the order of the request's files. */
  readonly attachments?: readonly [{ readonly id: 0; readonly filename: typeof DISCORD_FILE }];
  readonly embeds?: readonly [DiscordEmbed];
}

const MARKDOWN: Dialect = {
  label: (text) => `**${text}**: `,
  own: (text) => text,
  text: toDiscord,
  code: toDiscordCode,
  link: (text, cap, href) => `[${toDiscord(text, cap)}](<${href}>)`,
};

function toTexts({ name, heading, cap, lines, written }: WrittenBlock, links: Document["links"]): string {
  const texts = written.map((pieces) => pieces.join(""));
  if (name === "links") {
    const missing = links.length - lines.length;
    return [...texts, ...(missing === 0 ? [] : [`${missing} more do not fit here`])].join(" · ");
  }
  if (name === "advice")
    return `**${heading}**\n${toDiscordQuote(
      lines.map(([run]) => run?.text ?? ""),
      cap,
    )}`;
  return [...(heading === "" || name === "top" ? [] : [`**${heading}**`]), ...texts].join("\n");
}

/** Returns a group's whole list of rules if the message has no space for it; null if nothing is to be attached. */
function toDiscordFile(message: AlertMessage): string | null {
  const rest = toDocument(message, "whole", CAPS).members?.rest ?? [];
  return rest.length > 0 && showsMembers(message) ? toMembersFile(message) : null;
}

/** Returns by how many characters an embed is too long. */
function measureExcess({ title, description, fields }: DiscordEmbed): number {
  const beside = [title, ...fields.flatMap(({ name, value }) => [name, value])].join("");
  const chars = countCharacters(description);
  const total = chars + countCharacters(beside);
  return Math.max(total - DISCORD_LIMITS.total, 0) + Math.max(chars - DISCORD_LIMITS.description, 0);
}

/** Returns all facts as one message, which later transitions edit. An edit keeps the attachments. */
export function toDiscordMessage(message: AlertMessage): DiscordMessage {
  const document = toDocument(message, "whole", CAPS);
  const { status, statusText, subject, brief, links } = document;
  const [first] = links;
  const write = (paragraphs: WrittenBlock[][]): DiscordEmbed => ({
    title: toDiscord(subject === "" ? statusText : `${statusText} · ${subject}`, DISCORD_LIMITS.title),
    ...(first === undefined ? {} : { url: first.href }),
    description: paragraphs
      .flat()
      .filter(({ name }) => name !== "top")
      .map((block) => toTexts(block, links))
      .join("\n"),
    color: status === "resolved" ? GREEN : COLORS[message.severity],
    timestamp: formatIso(message.startedAt),
    fields: paragraphs
      .flat()
      .filter(({ name }) => name === "top")
      .map((block) => ({ name: block.heading, value: toTexts(block, links), inline: true })),
  });
  return {
    // A phone shows this text in its notification.
    content: toDiscord(`${statusText}: ${brief}`, HEADLINE_CHARS),
    allowed_mentions: { parse: [] },
    embeds: [fit(document, MARKDOWN, write, measureExcess)],
  };
}

/** Returns the additional message for a transition that must notify, because an edit notifies nobody. */
export function toDiscordNote(message: AlertMessage): DiscordMessage {
  const { statusText, subject } = toDocument(message, "transition");
  const phrase = describeCount(message);
  const counted = phrase === null ? "" : `: ${phrase.count} ${phrase.against}`;
  const content = `${toDiscord(`${statusText} · ${subject}`, 400)}${counted}`;
  return { content, allowed_mentions: { parse: [] } };
}

/** Every character that Discord's Markdown, mentions, emoji or masked links use. A backslash makes it literal. */
const MARKS = /[\\*_~|>#[\]()<@:+-]/;
/** Looks like a backtick. No backslash prevents a real backtick from ending a code span. */
const BACKTICK = "ˋ";

function escapeLine(line: string): string[] {
  return Array.from(line, (character) => {
    return character === "`" ? BACKTICK : MARKS.test(character) ? `\\${character}` : character;
  });
}

/**
 * Escapes hostile text so that it cannot format, link or mention. The result has at most `maxChars` code points, and no
 * escape is cut in half.
 */
export function toDiscord(text: string, maxChars: number): string {
  return joinWithin(escapeLine(toLine(text, maxChars)), maxChars);
}

/** Escapes hostile text and quotes it line by line. */
export function toDiscordQuote(lines: readonly string[], maxChars: number): string {
  const pieces = lines.flatMap((line, index) => [...(index === 0 ? [] : ["\n"]), "> ", ...escapeLine(line)]);
  return joinWithin(pieces, maxChars);
}

/** Escapes a hostile value for a code span, in which only the backtick has a meaning. */
export function toDiscordCode(text: string, maxChars: number): string {
  return `\`${toLine(text.replaceAll("`", BACKTICK), maxChars - 2) || "-"}\``;
}

const settings = {
  /** The URL of a webhook; `?thread_id=` posts into a thread. Anyone with the URL can post. */
  url: secretText,
  ...networkSettings,
};

type Options = SenderOptions<typeof settings>;

/** Discord answers with the whole message. */
const MAX_REPLY_BYTES = 256 * 1_024;

const created = z.object({ id: z.string().regex(/^\d{1,20}$/) });

/** Returns the request's body: JSON, or form data if there is a file. */
function toBody(message: DiscordMessage, file: string | null) {
  if (file === null) return { headers: {}, body: JSON.stringify(message) };
  const payload = JSON.stringify({ ...message, attachments: [{ id: 0, filename: DISCORD_FILE }] });
  const boundary = `longwatch-${createHash("sha256").update(payload).update(file).digest("hex")}`;
  const parts = [
    `content-disposition: form-data; name="payload_json"\r\ncontent-type: application/json\r\n\r\n${payload}`,
    `content-disposition: form-data; name="files[0]"; filename="${DISCORD_FILE}"\r\ncontent-type: text/plain; charset=utf-8\r\n\r\n${file}`,
  ];
  const body = `${parts.map((part) => `--${boundary}\r\n${part}\r\n`).join("")}--${boundary}--\r\n`;
  return { headers: { "content-type": `multipart/form-data; boundary=${boundary}` }, body };
}

interface Content {
  readonly message: DiscordMessage;
  readonly file?: string | null;
}

const toContent = (message: AlertMessage): Content => ({
  message: toDiscordMessage(message),
  file: toDiscordFile(message),
});

type Send = (id: string | null, content: Content, signal: AbortSignal) => Promise<Reply>;

/** Posts a message, or edits the message with an id. A 404 to an edit means that the message was deleted. */
function openWebhook({ name, url, clock, network = {}, timeoutMs = POST_TIMEOUT_MS }: Options): Send {
  const endpoint = openEndpoint(name, url, network);
  return (id, { message, file = null }, signal) => {
    const confirms = ({ body }: { readonly body: string }) => readReply(body, created) !== null;
    const request = {
      ...toBody(message, file),
      timeoutMs,
      clock,
      signal,
      confirms,
      maxReplyBytes: MAX_REPLY_BYTES,
    };
    // Without `wait`, Discord answers before it has stored the message, and without the message's id.
    if (id === null)
      return post(extendEndpoint(endpoint, "", { wait: "true" }), { method: "POST", ...request });
    return post(extendEndpoint(endpoint, `/messages/${id}`), { method: "PATCH", accepts: [404], ...request });
  };
}

/** Returns false if the message was deleted. If the webhook was deleted, posting a new message will fail as well. */
async function update(send: Send, id: string, message: AlertMessage, signal: AbortSignal): Promise<boolean> {
  const { status } = await send(id, toContent(message), signal);
  if (status === 404) return false;
  if (needsNotification(message)) await send(null, { message: toDiscordNote(message) }, signal);
  return true;
}

/**
 * Sends to Discord's webhook: one message per alert, updated in place. An update notifies nobody, so a transition that
 * needs a notification is also posted as a note. A long list of rules is attached as a file. There is no idempotency
 * key: after a lost reply the channel shows the message twice.
 * @throws {UsageError} for a bad URL
 */
function createSender(options: Options): Notifier["send"] {
  const send = openWebhook(options);
  return async (message, { signal, providerReference }) => {
    const posted = created.safeParse({ id: providerReference }).data?.id;
    if (posted !== undefined && (await update(send, posted, message, signal)))
      return { providerReference: posted };
    const { body } = await send(null, toContent(message), signal);
    return { providerReference: readReply(body, created)?.id ?? null };
  };
}

/** Returns the message, and the attached list of rules if it does not fit into the message. */
function renderDiscord(message: AlertMessage): readonly (DiscordMessage | string)[] {
  const file = toDiscordFile(message);
  return [toDiscordMessage(message), ...(file === null ? [] : [file])];
}

export const discord = defineChannel({
  kind: "discord",
  settings,
  example: { url: "https://discord.example/api/webhooks/1/example-path" },
  capabilities: {
    rate: { perMinute: 20, digest: { in: "list", maxChars: 2_800, charsBeside: 2 } },
    longestPauseMs: 2 * 60_000,
    laterTransitions: "update-in-place",
    showsAcknowledgements: true,
    renewAfterMs: null,
    limits: { message: { most: DISCORD_LIMITS.total, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
  render: renderDiscord,
  createSender,
});
