/** The channel of a Mattermost bot, and an alert as its attachment. */

import { z } from "zod";
import { type Document, toDocument } from "#delivery/rules/message/document.ts";
import { partMembers } from "#delivery/rules/message/group-members.ts";
import {
  BACKTICK,
  breakLinks,
  type Dialect,
  escapeWithin,
  fit,
  joinParagraph,
  toCodeSpan,
  toInert,
  type WrittenBlock,
} from "#delivery/rules/message/write-document.ts";
import { createSecret } from "#lib/secret.ts";
import { countCharacters, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { digest } from "#model/fingerprint.ts";
import {
  defineChannel,
  EDITED_CHAT,
  type Notifier,
  type SenderOptions,
  secretText,
  textSettings,
} from "../../channel-definition.ts";
import { openApi, sendInPlace, sendParts } from "../../post.ts";

/**
 * Limits in code points: of a post's text, and of its properties, which hold the attachment (mattermost/server/public/model,
 * PostMessageMaxRunesV2 and PostPropsMaxUserRunes). `attachment` is Longwatch's own: people read no more.
 */
const MATTERMOST_LIMITS = { message: 16_383, props: 760_000, attachment: 12_000 } as const;

const measureText = (text: string) => countCharacters(toMattermost(text, MATTERMOST_LIMITS.message));
const MEMBER_ROWS = 8;
const MEMBER_ROOM = { rows: MEMBER_ROWS, rowChars: 110, chars: 900, measure: measureText } as const;
const PART_ROOM = { chars: 12_000, lineChars: 2_800, measure: measureText } as const;
const CAPS = { title: 160, verdict: 250, facts: 300, commands: 400, top: 120, members: MEMBER_ROOM } as const;

const COLORS = { critical: "#d32f2f", error: "#f57c00", warning: "#fbc02d", info: "#1976d2" } as const;
const GREEN = "#388e3c";

/** The characters that a backslash makes literal in Mattermost's Markdown (mattermost/marked, `inline.escape`). */
const MARKS = /[\\*{}[\]()#+\-!_>~|]/;
/** Entities for marks that no backslash makes literal. */
const LITERALS: Readonly<Record<string, string>> = { "<": "&lt;", "&": "&amp;", $: "&#36;", "`": BACKTICK };
/** Prevents hashtags, links to channels, emoji, addresses such as `tel:1` and a line that makes the one above a heading. */
const FOUND = /[#~](?=[\p{L}\p{N}_])|(?<!\d):(?=\S)/gu;

const escape = (character: string) =>
  LITERALS[character] ?? (MARKS.test(character) ? `\\${character}` : character);

/** Escapes hostile text so that it cannot format, link or mention. The result has at most `maxChars` code points. */
export function toMattermost(text: string, maxChars: number): string {
  const line = breakLinks(toLine(text, maxChars)).replace(FOUND, (mark) => `${mark}\u2060`);
  return escapeWithin(line.replace(/^=/, "\u2060="), maxChars, escape);
}

const bold = (text: string) => `**${text}**`;

const MARKDOWN: Dialect = {
  label: (text) => `${bold(text)}: `,
  own: (text) => text,
  text: toMattermost,
  code: toCodeSpan,
  link: (text, cap, href) => {
    const safe = href.replaceAll("(", "%28").replaceAll(")", "%29");
    return `[${toMattermost(text, cap)}](${safe})`;
  },
};

const quote = (lines: readonly string[]) => lines.map((line) => `> ${line}`).join("\n");

function toTitle({ statusText, subject }: Document): string {
  return `${bold(statusText)}${subject === "" ? "" : ` · ${toMattermost(subject, CAPS.title)}`}`;
}

function open(message: AlertMessage, view: "transition" | "whole"): Document {
  return toDocument(message, view, { ...CAPS, members: { ...MEMBER_ROOM, elsewhere: "in the thread" } });
}

/** Returns all facts as a post with one attachment, which later transitions edit. */
export function toMattermostPost(message: AlertMessage) {
  const document = open(message, "whole");
  const { status, statusText, brief } = document;
  const write = (paragraphs: WrittenBlock[][]) => {
    const { fields = [], texts = [] } = Object.groupBy(paragraphs, ([first]) =>
      first?.name === "top" ? "fields" : "texts",
    );
    return {
      fallback: toInert(`${statusText}: ${brief}`),
      color: status === "resolved" ? GREEN : COLORS[message.severity],
      text: [toTitle(document), ...texts.map((blocks) => joinParagraph(blocks, bold, quote))].join("\n\n"),
      fields: fields.flat().map(({ heading, written }) => {
        return { short: true, title: heading, value: written.map((pieces) => pieces.join("")).join("\n") };
      }),
    };
  };
  const attachment = fit(document, MARKDOWN, write, ({ text, fields }) => {
    const all = [text, ...fields.flatMap(({ title, value }) => [title, value])].join("");
    return countCharacters(all) - MATTERMOST_LIMITS.attachment;
  });
  return { message: "", props: { attachments: [attachment] } };
}

/** Returns further posts with the names of the rules that do not fit into the attachment. */
function toMattermostParts(message: AlertMessage) {
  return partMembers(message, open(message, "whole").members?.rest ?? [], PART_ROOM).map(
    ({ title, lines }) => ({
      message: [bold(title), ...lines.map((line) => toMattermost(line, MATTERMOST_LIMITS.message))].join(
        "\n",
      ),
    }),
  );
}

const settings = {
  /** The token of a bot account that is a member of the channel. */
  token: secretText,
  /** The channel's id, which "View Info" shows: 26 letters and digits. */
  channel: z.string().regex(/^[a-z0-9]{26}$/, "must be the id of a channel, 26 letters and digits"),
  /** The server's address, without `/api/v4`. */
  url: z.url(),
  ...textSettings,
};

const created = z.object({ id: z.string().regex(/^[a-z0-9]{26}$/) });
/** Error ids of the server. */
const PHRASES = [
  "api.context.session_expired.app_error",
  "api.context.permissions.app_error",
  "api.post.create_post.can_not_post_to_deleted.error",
  "model.post.is_valid.message_length.app_error",
  "model.post.is_valid.props.app_error",
];

/**
 * Sends as a bot: one post per alert, updated in place. An update notifies nobody, so a transition that needs a notification
 * is also posted as a note. A long list of rules is in the thread. The server drops a post that is sent again within
 * seconds after a lost answer.
 * @throws {UsageError} for a bad URL or token
 */
function createSender(options: SenderOptions<typeof settings>): Notifier["send"] {
  const { token, channel, url } = options;
  const call = openApi(options, {
    url: createSecret(url),
    credentials: { token },
    headers: { authorization: `Bearer ${token.reveal()}` },
    answer: created,
    phrases: PHRASES,
  });
  return async (message, sending) => {
    const create = async (what: string | number, body: object) => {
      const key = { channel_id: channel, pending_post_id: digest([sending.deliveryKey, what]) };
      return (await call({ ...key, ...body }, sending, { path: "/api/v4/posts" })).answer?.id ?? null;
    };
    const parts = toMattermostParts(message);
    return sendParts(parts.length + 1, sending, async (index, reference) => {
      const posted = created.safeParse({ id: reference }).data?.id ?? null;
      const part = parts[index - 1];
      if (part !== undefined) {
        await create(index, { ...part, ...(posted === null ? {} : { root_id: posted }) });
        return reference;
      }
      const { message: text, props } = toMattermostPost(message);
      return sendInPlace(message, posted, {
        // The post was deleted, or its time for edits is over. If the bot may not post either, posting anew says so.
        edit: async (id) => {
          const how = { path: `/api/v4/posts/${id}/patch`, method: "PUT", accepts: [400, 403, 404] } as const;
          return (await call({ props }, sending, how)).status < 300;
        },
        note: () => create("note", { message: toTitle(open(message, "transition")) }),
        post: () => create(0, { message: text, props }),
      });
    });
  };
}

export const mattermost = defineChannel({
  kind: "mattermost",
  settings,
  example: { token: "example-token", channel: "a".repeat(26), url: "https://chat.example" },
  capabilities: {
    ...EDITED_CHAT,
    rate: { perMinute: 30, digest: { in: "list", maxChars: 8_000, charsBeside: 2 } },
    limits: { message: { most: MATTERMOST_LIMITS.message, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
  render: (message) => [toMattermostPost(message), ...toMattermostParts(message)],
  createSender,
});
