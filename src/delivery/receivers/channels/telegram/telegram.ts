/** The channel of a Telegram bot, and an alert as its message. */

import { z } from "zod";
import { type Document, toDocument } from "#delivery/rules/message/document.ts";
import { toAttachment } from "#delivery/rules/message/group-members.ts";
import {
  breakLinks,
  type Dialect,
  escapeTags,
  fit,
  joinParagraph,
} from "#delivery/rules/message/write-document.ts";
import { createSecret } from "#lib/secret.ts";
import { countCharacters, cutText, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import {
  defineChannel,
  EDITED_CHAT,
  type Notifier,
  type SenderOptions,
  secretText,
  textSettings,
} from "../../channel-definition.ts";
import { readReply } from "../../delivery-error.ts";
import { openApi, sendInPlace, sendParts } from "../../post.ts";

/**
 * Limits of a message: code points of the text without its tags, and pieces with a format, above which Telegram formats no
 * further ones (core.telegram.org/bots/api, "sendMessage"; utf8_length in tdlib's MessageContent.cpp).
 */
const TELEGRAM_LIMITS = { text: 4_096, entities: 100 } as const;

/** Returns the length that Telegram counts: every tag is nothing, and every entity one character. */
const measure = (html: string) => countCharacters(html.replace(/<[^>]*>/g, "").replace(/&[#\w]+;/g, "&"));
const measureText = (text: string) => countCharacters(unlink(text));
const MEMBER_ROWS = 6;
const CAPS = {
  title: 160,
  verdict: 140,
  headline: 400,
  facts: 300,
  commands: 250,
  top: 60,
  advice: { maxLines: 30, maxChars: 2_000 },
  members: { rows: MEMBER_ROWS, rowChars: 80, chars: 400, measure: measureText },
} as const;

/** Telegram finds commands, hashtags and symbols of shares on its own, and no setting turns that off. */
function unlink(text: string): string {
  return breakLinks(text).replace(/[#$/](?=[\p{L}\p{N}_])/gu, (mark) => `${mark}\u2060`);
}

/** Escapes hostile text for Telegram's HTML. The shown text has at most `maxChars` code points. */
export function toTelegram(text: string, maxChars: number): string {
  return escapeTags(cutText(unlink(toLine(text, maxChars)), maxChars));
}

const bold = (text: string) => `<b>${escapeTags(text)}</b>`;

/** Nothing is found inside code, so that a value can be copied as it is. */
const HTML: Dialect = {
  label: (text) => `${bold(text)}: `,
  own: escapeTags,
  text: toTelegram,
  code: (text, cap) => `<code>${escapeTags(toLine(text, cap) || "-")}</code>`,
  link: (text, cap, href) => `<a href="${escapeTags(href)}">${toTelegram(text, cap)}</a>`,
};

const quote = (lines: readonly string[]) => `<blockquote expandable>${lines.join("\n")}</blockquote>`;

const SIGNS = { critical: "🔴", error: "🟠", warning: "🟡", info: "🔵" } as const;

/** Returns the first line of a message. */
function toTitle({ severity }: AlertMessage, { status, statusText, subject }: Document): string {
  const about = subject === "" ? "" : ` · ${toTelegram(subject, CAPS.title)}`;
  return `${status === "resolved" ? "✅" : SIGNS[severity]} ${bold(statusText)}${about}`;
}

/** Returns all facts as one text in Telegram's HTML, which later transitions edit. */
export function toTelegramText(message: AlertMessage): string {
  const members = { ...CAPS.members, elsewhere: "attached" };
  const document = toDocument(message, "whole", { ...CAPS, members });
  const title = toTitle(message, document);
  return fit(
    document,
    HTML,
    (paragraphs) => [title, ...paragraphs.map((blocks) => joinParagraph(blocks, bold, quote))].join("\n\n"),
    (html) => measure(html) - TELEGRAM_LIMITS.text,
  );
}

/** Returns the text, and the list of its group's rules if that is to be attached. */
function renderTelegram(message: AlertMessage) {
  const file = toAttachment(message, toDocument(message, "whole", CAPS).members?.rest);
  return [toTelegramText(message), ...(file === null ? [] : [{ document: file }])] as const;
}

const settings = {
  /** The token that BotFather gave, `123456:ABC...`. */
  token: secretText,
  /** The id of a chat, group or channel (a number as text), or a public channel's `@name`. */
  chat: z.string().regex(/^(?:-?\d{1,20}|@\w{4,32})$/, "must be a chat's id, or @name of a public channel"),
  /** The id of a topic in a group that has topics. */
  topic: z.number().int().positive().optional(),
  /** The address of a Bot API server. Default: `https://api.telegram.org`. */
  url: z.url().optional(),
  ...textSettings,
};

const API_URL = "https://api.telegram.org";

const answer = z.object({
  ok: z.literal(true),
  result: z.object({ message_id: z.number().int(), chat: z.object({ id: z.number().int() }) }),
});
const refusal = z.object({ parameters: z.object({ retry_after: z.number().nonnegative() }) });
/** Parts of the Bot API's descriptions. */
const UNCHANGED = "message is not modified";
const PHRASES = ["chat not found", "bot was blocked", "bot was kicked", "chat was upgraded", "Unauthorized"];

interface Place {
  readonly chat_id: string;
  readonly message_id: number;
}

/** Reads a reference such as `-100123:42`. */
function readReference(reference: string | null): Place | null {
  const [, chat, id] = /^(-?\d{1,20}):(\d{1,15})$/.exec(reference ?? "") ?? [];
  return chat === undefined || id === undefined ? null : { chat_id: chat, message_id: Number(id) };
}

/**
 * Sends to a chat as a bot: one message per alert, updated in place. An update notifies nobody, so a transition that needs a
 * notification is also posted as a reply. There is no idempotency key: after a lost answer the chat shows the message
 * twice, but an update that arrives twice changes nothing.
 * @throws {UsageError} for a bad URL or token
 */
function createSender(options: SenderOptions<typeof settings>): Notifier["send"] {
  const { token, chat, topic, url = API_URL } = options;
  const isToken = /^\d{1,20}:[\w-]+$/.test(token.reveal());
  const call = openApi(options, {
    url: createSecret(isToken ? `${url.replace(/\/+$/, "")}/bot${token.reveal()}` : url),
    mistakes: isToken ? [] : ["token: must be a bot's, as 123456:ABC"],
    credentials: { token },
    answer,
    readPause: (body) => {
      const seconds = readReply(body, refusal)?.parameters.retry_after;
      return seconds === undefined ? null : seconds * 1_000;
    },
    phrases: PHRASES,
  });
  const where = { chat_id: chat, ...(topic === undefined ? {} : { message_thread_id: topic }) };
  const form = { parse_mode: "HTML", link_preview_options: { is_disabled: true } } as const;

  return async (message, sending) => {
    const send = async (text: string, posted: Place | null) => {
      const reply = posted && { message_id: posted.message_id, allow_sending_without_reply: true };
      const whole = { ...where, text, ...form, ...(reply === null ? {} : { reply_parameters: reply }) };
      const sent = (await call(whole, sending, { path: "/sendMessage" })).answer?.result;
      return sent === undefined ? null : { chat_id: String(sent.chat.id), message_id: sent.message_id };
    };
    const [text, file] = renderTelegram(message);
    return sendParts(file === undefined ? 1 : 2, sending, async (index, reference) => {
      const posted = readReference(reference);
      if (file !== undefined && index === 1) {
        const fields = Object.entries({ ...where, disable_notification: true });
        const plain = fields.map(([name, value]) => ({ name, type: "text/plain", text: String(value) }));
        const list = { name: "document", type: "text/plain; charset=utf-8", text: file.document };
        const parts = [...plain, { ...list, filename: "rules.txt" }];
        await call({}, sending, { path: "/sendDocument", form: parts });
        return reference;
      }
      const place = await sendInPlace(message, posted, {
        edit: async (at) => {
          const how = { path: "/editMessageText", accepts: [400] };
          const { status, body } = await call({ ...at, text, ...form }, sending, how);
          return status !== 400 || (body?.includes(UNCHANGED) ?? false);
        },
        note: (at) => send(toTitle(message, toDocument(message, "transition", CAPS)), at),
        post: () => send(text, null),
      });
      return place === null ? null : `${place.chat_id}:${place.message_id}`;
    });
  };
}

export const telegram = defineChannel({
  kind: "telegram",
  settings,
  example: { token: "123456:example-token", chat: "-1001234567890" },
  capabilities: {
    ...EDITED_CHAT,
    // A bot may post 20 messages a minute in a group (core.telegram.org/bots/faq). An update and its reply are two.
    rate: { perMinute: 10, digest: { in: "list", maxChars: 2_800, charsBeside: 2 } },
    limits: { message: { most: TELEGRAM_LIMITS.text, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
  render: renderTelegram,
  createSender,
});
