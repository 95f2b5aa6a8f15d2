/** The channel of ntfy, and an alert as its notification. */

import { z } from "zod";
import { toDocument } from "#delivery/rules/message/document.ts";
import { breakLinks, fitPlain, leaveOut, needsNotification } from "#delivery/rules/message/write-document.ts";
import { createSecret } from "#lib/secret.ts";
import { cutText } from "#lib/text.ts";
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
import { openApi } from "../../post.ts";

/**
 * Limits of ntfy's server: bytes of a message, above which the message becomes an attached file; bytes of a JSON request;
 * number of buttons (docs.ntfy.sh/publish, "Limitations"; server/server.go and server/actions.go).
 */
export const NTFY_LIMITS = { message: 4_096, body: 8_192, actions: 3 } as const;

/** Bytes of JSON, which are never fewer than those of the text. Buttons, title and names of fields take the rest of a request. */
const TEXT_BYTES = 3_900;
const TITLE_CHARS = 150;
const measureJson = (text: string) => Buffer.byteLength(JSON.stringify(text)) - 2;
const MEMBER_ROWS = 6;
const CAPS = {
  title: TITLE_CHARS,
  verdict: 160,
  headline: 300,
  facts: 200,
  commands: 300,
  top: 80,
  advice: { maxLines: 20, maxChars: 1_200 },
  members: { rows: MEMBER_ROWS, rowChars: 80, chars: 500, measure: measureJson },
} as const;

/** 1 makes no sound and shows no banner; 5 vibrates longest and passes over "do not disturb". */
const PRIORITIES = { critical: 5, error: 4, warning: 3, info: 2 } as const;
const QUIET = 1;
/** Names of emoji, which ntfy shows in front of the title. */
const TAGS = {
  critical: "red_circle",
  error: "orange_circle",
  warning: "yellow_circle",
  info: "blue_circle",
} as const;

/**
 * Returns the notification without its topic. `sequence_id` is the same for all transitions of an alert, so that the apps
 * replace the notification that they show.
 */
export function toNtfyNotification(message: AlertMessage) {
  const document = toDocument(message, "whole", CAPS);
  const { status, statusText, subject, links } = document;
  const buttons = links.slice(0, NTFY_LIMITS.actions);
  // A cut link would not work, so only the text before the links is cut.
  const more = links
    .slice(buttons.length)
    .map(({ title, href }) => `\n${breakLinks(title)}: ${href}`)
    .join("");
  const room = TEXT_BYTES - measureJson(more);
  const isQuiet = message.reason !== "first" && !needsNotification(message);
  return {
    sequence_id: digest([message.dedupeKey]),
    title: cutText(breakLinks(subject === "" ? statusText : `${statusText} · ${subject}`), TITLE_CHARS),
    message: `${fitPlain(leaveOut(document, "links"), breakLinks, room, measureJson)}${more}`,
    priority: isQuiet ? QUIET : PRIORITIES[message.severity],
    tags: [status === "resolved" ? "white_check_mark" : TAGS[message.severity]],
    ...(buttons[0] === undefined ? {} : { click: buttons[0].href }),
    actions: buttons.map(({ title, href }) => ({ action: "view" as const, label: title, url: href })),
  };
}

const settings = {
  /** The address of a topic, such as `https://ntfy.sh/name`. Anyone who knows the name can read and post. */
  url: secretText,
  /** An access token, `tk_...`, for a topic that is protected. */
  token: secretText.optional(),
  ...textSettings,
};

/** The topic behind the server's address. ntfy allows these names. */
const TOPIC = /^(.*)\/([-_A-Za-z0-9]{1,64})\/?$/s;

/**
 * Sends to a topic of ntfy. A server from version 2.16 replaces an earlier notification of the alert; an older one shows one
 * more. A notification that arrives twice after a lost answer replaces itself.
 * @throws {UsageError} for a bad URL or token
 */
function createSender(options: SenderOptions<typeof settings>): Notifier["send"] {
  const { url, token } = options;
  const server = URL.parse(url.reveal());
  const [, base = "", topic = ""] = TOPIC.exec(server?.pathname ?? "") ?? [];
  if (server !== null) server.pathname = `${base}/`;
  const call = openApi(options, {
    url: server === null ? url : createSecret(server.href),
    mistakes: server === null || topic !== "" ? [] : ["url: must end in the name of a topic"],
    credentials: { token },
    secrets: [url],
    headers: token === undefined ? {} : { authorization: `Bearer ${token.reveal()}` },
    answer: z.object({ id: z.string().min(1), event: z.literal("message") }),
    // Error codes of the server (server/errors.go).
    phrases: ["unauthorized", "forbidden", "daily message quota reached", "too many requests"],
  });
  return async (message, sending) => {
    const notification = toNtfyNotification(message);
    await call({ topic, ...notification }, sending);
    return { providerReference: notification.sequence_id };
  };
}

export const ntfy = defineChannel({
  kind: "ntfy",
  settings,
  example: { url: "https://ntfy.example/example-topic" },
  capabilities: {
    ...EDITED_CHAT,
    rate: { perMinute: 10, digest: { in: "list", maxChars: 2_000, charsBeside: 2 } },
    limits: { message: { most: NTFY_LIMITS.body, unit: "bytes" }, memberRows: MEMBER_ROWS },
  },
  render: (message) => [toNtfyNotification(message)],
  createSender,
});
