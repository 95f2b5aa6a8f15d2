/** The channel of Google Chat, and an alert as its card. */

import { z } from "zod";
import { type Document, toDocument } from "#delivery/rules/message/document.ts";
import { partMembers, showsMembers } from "#delivery/rules/message/group-members.ts";
import {
  breakLinks,
  type Dialect,
  escapeTags,
  escapeWithin,
  fit,
  joinParagraph,
  needsNotification,
  toInert,
  type WrittenBlock,
} from "#delivery/rules/message/write-document.ts";
import { toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { digest } from "#model/fingerprint.ts";
import {
  defineChannel,
  type Notifier,
  POSTED_CHAT,
  type SenderOptions,
  secretText,
  textSettings,
} from "../../channel-definition.ts";
import { openApi, sendParts } from "../../post.ts";

/**
 * Limits of a message in bytes, text and cards together, and of widgets in a card, above which Chat shows no further ones
 * (developers.google.com/workspace/chat, "spaces.messages.create" and "Card").
 */
const GOOGLE_CHAT_LIMITS = { bytes: 32_000, widgets: 100 } as const;

/** Escapes hostile text for the HTML of a card. The result has at most `maxChars` code points. */
export function toCardText(text: string, maxChars: number): string {
  return escapeWithin(breakLinks(toLine(text, maxChars)), maxChars, escapeTags);
}

const measureJson = (text: string) => Buffer.byteLength(JSON.stringify(toCardText(text, 30_000))) - 2;
const MEMBER_ROWS = 10;
const MEMBERS = { rows: MEMBER_ROWS, rowChars: 160, chars: 2_000, measure: measureJson } as const;
const PART_ROOM = { chars: 26_000, lineChars: 2_000, measure: measureJson } as const;

const bold = (text: string) => `<b>${escapeTags(text)}</b>`;

/** Cards have no code, and their links are buttons. */
const HTML: Dialect = {
  label: (text) => `${bold(text)}: `,
  own: escapeTags,
  text: toCardText,
  code: toCardText,
  link: escapeTags,
};

type Widget =
  | { readonly textParagraph: { readonly text: string } }
  | {
      readonly buttonList: {
        readonly buttons: readonly {
          readonly text: string;
          readonly onClick: { readonly openLink: { readonly url: string } };
        }[];
      };
    };

/** Returns a message with one card. Phones show `fallbackText` in their notification. */
function envelop(fallbackText: string, header: object, widgets: readonly Widget[]) {
  return { fallbackText, cardsV2: [{ cardId: "alert", card: { header, sections: [{ widgets }] } }] };
}

function open(message: AlertMessage): Document {
  const elsewhere = showsMembers(message) ? "in the next messages" : undefined;
  return toDocument(message, "transition", { members: { ...MEMBERS, elsewhere } });
}

function toWidgets(paragraphs: readonly WrittenBlock[][], links: Document["links"]): Widget[] {
  const texts = paragraphs
    .filter(([first]) => first?.name !== "links")
    .map((blocks) => ({ textParagraph: { text: joinParagraph(blocks, bold, (lines) => lines.join("\n")) } }));
  const buttons = links.map(({ title, href }) => ({
    text: toInert(title),
    onClick: { openLink: { url: href } },
  }));
  return [...texts, ...(buttons.length === 0 ? [] : [{ buttonList: { buttons } }])];
}

/** Returns a message with the card of an alert, cut until it fits. */
export function toGoogleChatMessage(message: AlertMessage) {
  const document = open(message);
  const { statusText, subject, brief, links } = document;
  const header = { title: toInert(statusText), ...(subject === "" ? {} : { subtitle: toInert(subject) }) };
  return fit(
    document,
    HTML,
    (paragraphs) => envelop(toInert(`${statusText}: ${brief}`), header, toWidgets(paragraphs, links)),
    (body) => Buffer.byteLength(JSON.stringify(body)) - GOOGLE_CHAT_LIMITS.bytes,
  );
}

/** Returns the message, and further ones with the names of the rules that do not fit into it. */
function renderGoogleChat(message: AlertMessage) {
  const parts = partMembers(message, open(message).members?.rest ?? [], PART_ROOM).map(({ title, lines }) => {
    const text = lines.map((line) => toCardText(line, PART_ROOM.chars)).join("\n");
    return envelop(toInert(title), { title: toInert(title) }, [{ textParagraph: { text } }]);
  });
  return [toGoogleChatMessage(message), ...parts];
}

const settings = {
  /** The URL of an incoming webhook of a space. Anyone with the URL can post. */
  url: secretText,
  ...textSettings,
};

/**
 * Posts to a space by its incoming webhook, which cannot edit. The messages of an alert are one thread. A reply in a thread
 * notifies only its followers, so a transition that needs a notification is posted outside the thread. Because of its
 * request id, a message that is sent twice after a lost answer is shown once.
 * @throws {UsageError} for a bad URL
 */
function createSender(options: SenderOptions<typeof settings>): Notifier["send"] {
  const call = openApi(options, {
    url: options.url,
    credentials: {},
    answer: z.object({ name: z.string().regex(/^spaces\/[^/]+\/messages\/[^/]+$/) }),
    // Statuses of the API.
    phrases: ["PERMISSION_DENIED", "UNAUTHENTICATED", "NOT_FOUND", "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"],
  });
  return async (message, sending) => {
    const bodies = renderGoogleChat(message);
    const thread = { thread: { threadKey: message.dedupeKey } };
    return sendParts(bodies.length, sending, async (index) => {
      const body = { ...bodies[index], ...(index === 0 && needsNotification(message) ? {} : thread) };
      const requestId = digest([sending.deliveryKey, index]);
      const messageReplyOption = "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD";
      await call(body, sending, { query: { requestId, messageReplyOption } });
      return null;
    });
  };
}

export const googleChat = defineChannel({
  kind: "google-chat",
  settings,
  example: { url: "https://chat.example/v1/spaces/AAA/messages?key=example-key&token=example-token" },
  capabilities: {
    ...POSTED_CHAT,
    rate: { perMinute: 30, digest: { in: "list", maxChars: 8_000, charsBeside: 2 } },
    limits: { message: { most: GOOGLE_CHAT_LIMITS.bytes, unit: "bytes" }, memberRows: MEMBER_ROWS },
  },
  render: renderGoogleChat,
  createSender,
});
