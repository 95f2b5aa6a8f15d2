/** The channel of Discord, and an alert as its message. */

import { z } from "zod";
import { describeCount } from "#delivery/rules/message/describe-alert.ts";
import { type Document, toDocument } from "#delivery/rules/message/document.ts";
import { toAttachment } from "#delivery/rules/message/group-members.ts";
import {
  BACKTICK,
  type Dialect,
  escapeWithin,
  fit,
  quoteWithin,
  toCodeSpan,
  type WrittenBlock,
} from "#delivery/rules/message/write-document.ts";
import { formatIso } from "#lib/format.ts";
import { countCharacters, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import {
  defineChannel,
  EDITED_CHAT,
  type Notifier,
  type SenderOptions,
  secretText,
  textSettings,
} from "../../channel-definition.ts";
import { openApi, sendInPlace } from "../../post.ts";

/** Discord's limits in characters; `total` is over all texts of its embeds (discord.com/developers, "Embed Limits"). */
export const DISCORD_LIMITS = { title: 256, description: 4_096, total: 6_000 } as const;
const measureDiscord = (text: string) => countCharacters(toDiscord(text, DISCORD_LIMITS.description));
const MEMBER_ROWS = 6;
const MEMBER_ROOM = { rows: MEMBER_ROWS, rowChars: 70, chars: 400, measure: measureDiscord } as const;
const LINES = { headline: 600, verdict: 140, facts: 600, commands: 300, links: 60, top: 60 } as const;
const ADVICE = { maxLines: 30, maxChars: 2_000 } as const;
const CAPS = { ...LINES, advice: ADVICE, members: { ...MEMBER_ROOM, elsewhere: "attached" } } as const;
const DISCORD_FILE = "rules.txt";

const COLORS = { critical: 0xd32f2f, error: 0xf57c00, warning: 0xfbc02d, info: 0x1976d2 } as const;
const GREEN = 0x388e3c;
/** No text can notify anybody. */
const SILENT = { allowed_mentions: { parse: [] } } as const;

const MARKDOWN: Dialect = {
  label: (text) => `**${text}**: `,
  own: (text) => text,
  text: toDiscord,
  code: toCodeSpan,
  link: (text, cap, href) => `[${toDiscord(text, cap)}](<${href}>)`,
};

function toTexts({ name, heading, cap, lines, written }: WrittenBlock, links: Document["links"]): string {
  const texts = written.map((pieces) => pieces.join(""));
  if (name === "links") {
    const missing = links.length - lines.length;
    return [...texts, ...(missing === 0 ? [] : [`${missing} more do not fit here`])].join(" · ");
  }
  const raw = lines.map(([run]) => run?.text ?? "");
  if (name === "advice") return `**${heading}**\n${toDiscordQuote(raw, cap)}`;
  return [...(heading === "" || name === "top" ? [] : [`**${heading}**`]), ...texts].join("\n");
}

/** Returns the message of all facts, and the list of its group's rules if that is to be attached. */
function renderDiscord(message: AlertMessage) {
  const document = toDocument(message, "whole", CAPS);
  const file = toAttachment(message, document.members?.rest);
  return [toEmbedded(message, document), ...(file === null ? [] : [file])] as const;
}

/** Returns all facts as one message, which later transitions edit. An edit keeps the attachments. */
export function toDiscordMessage(message: AlertMessage) {
  return renderDiscord(message)[0];
}

function toEmbedded({ severity, startedAt }: AlertMessage, document: Document) {
  const { status, statusText, subject, brief, links } = document;
  const [first] = links;
  const write = (paragraphs: WrittenBlock[][]) => {
    const blocks = Object.groupBy(paragraphs.flat(), ({ name }) => (name === "top" ? "fields" : "texts"));
    const { fields = [], texts = [] } = blocks;
    return {
      title: toDiscord(subject === "" ? statusText : `${statusText} · ${subject}`, DISCORD_LIMITS.title),
      ...(first === undefined ? {} : { url: first.href }),
      description: texts.map((block) => toTexts(block, links)).join("\n"),
      color: status === "resolved" ? GREEN : COLORS[severity],
      timestamp: formatIso(startedAt),
      fields: fields.map((block) => ({ name: block.heading, value: toTexts(block, links), inline: true })),
    };
  };
  const excessOf = ({ title, description, fields }: ReturnType<typeof write>) => {
    const beside = [title, ...fields.flatMap(({ name, value }) => [name, value])].join("");
    const chars = countCharacters(description);
    const total = chars + countCharacters(beside);
    return Math.max(total - DISCORD_LIMITS.total, 0) + Math.max(chars - DISCORD_LIMITS.description, 0);
  };
  // A phone shows the content in its notification.
  const content = toDiscord(`${statusText}: ${brief}`, LINES.headline);
  return { content, ...SILENT, embeds: [fit(document, MARKDOWN, write, excessOf)] as const };
}

/** Returns the additional message for a transition that must notify, because an edit notifies nobody. */
export function toDiscordNote(message: AlertMessage) {
  const { statusText, subject } = toDocument(message, "transition");
  const phrase = describeCount(message);
  const counted = phrase === null ? "" : `: ${phrase.count} ${phrase.against}`;
  return { content: `${toDiscord(`${statusText} · ${subject}`, 400)}${counted}`, ...SILENT };
}

/** Every character that Discord's Markdown, mentions, emoji or masked links use. A backslash makes it literal. */
const MARKS = /[\\*_~|>#[\]()<@:+-]/;

const escape = (character: string) =>
  character === "`" ? BACKTICK : MARKS.test(character) ? `\\${character}` : character;

/**
 * Escapes hostile text so that it cannot format, link or mention. The result has at most `maxChars` code points, and no
 * escape is cut in half.
 */
export function toDiscord(text: string, maxChars: number): string {
  return escapeWithin(toLine(text, maxChars), maxChars, escape);
}

/** Escapes hostile text and quotes it line by line. */
export function toDiscordQuote(lines: readonly string[], maxChars: number): string {
  return quoteWithin(lines, maxChars, escape);
}

const settings = {
  /** The URL of a webhook; `?thread_id=` posts into a thread. Anyone with the URL can post. */
  url: secretText,
  ...textSettings,
};

type Options = SenderOptions<typeof settings>;

const created = z.object({ id: z.string().regex(/^\d{1,20}$/) });

/**
 * Sends to Discord's webhook: one message per alert, updated in place. An update notifies nobody, so a transition that
 * needs a notification is also posted as a note. A long list of rules is attached as a file. There is no idempotency
 * key: after a lost reply the channel shows the message twice.
 * @throws {UsageError} for a bad URL
 */
function createSender(options: Options): Notifier["send"] {
  // Discord answers with the whole message.
  const api = { url: options.url, credentials: {}, answer: created, maxReplyBytes: 256 * 1_024 };
  const call = openApi(options, api);
  // Without `wait`, Discord answers before it has stored the message, and without the message's id.
  const anew = { query: { wait: "true" } };
  return async (message, sending) => {
    const [body, text] = renderDiscord(message);
    const json = JSON.stringify({ ...body, attachments: [{ id: 0, filename: DISCORD_FILE }] });
    const file = text !== undefined && {
      form: [
        { name: "payload_json", type: "application/json", text: json },
        { name: "files[0]", type: "text/plain; charset=utf-8", text, filename: DISCORD_FILE },
      ],
    };
    const posted = created.safeParse({ id: sending.providerReference }).data?.id ?? null;
    const reached = await sendInPlace(message, posted, {
      // A 404 to an edit means that the message was deleted, or the webhook: then posting a new one will fail as well.
      edit: async (id) => {
        const edit = { method: "PATCH", path: `/messages/${id}`, accepts: [404], ...file } as const;
        return (await call(body, sending, edit)).status !== 404;
      },
      note: () => call(toDiscordNote(message), sending, anew),
      post: async () => (await call(body, sending, { ...anew, ...file })).answer?.id ?? null,
    });
    return { providerReference: reached };
  };
}

export const discord = defineChannel({
  kind: "discord",
  settings,
  example: { url: "https://discord.example/api/webhooks/1/example-path" },
  capabilities: {
    ...EDITED_CHAT,
    rate: { perMinute: 20, digest: { in: "list", maxChars: 2_800, charsBeside: 2 } },
    limits: { message: { most: DISCORD_LIMITS.total, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
  render: renderDiscord,
  createSender,
});
