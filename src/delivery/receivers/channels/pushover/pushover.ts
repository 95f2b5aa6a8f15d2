/** The channel of Pushover, and an alert as its message. */

import { z } from "zod";
import { toDocument } from "#delivery/rules/message/document.ts";
import { breakLinks, fitPlain, leaveOut, needsNotification } from "#delivery/rules/message/write-document.ts";
import { many } from "#lib/format.ts";
import { createSecret } from "#lib/secret.ts";
import { countCharacters, cutText } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import {
  defineChannel,
  type Notifier,
  POSTED_CHAT,
  type SenderOptions,
  secretText,
  textSettings,
} from "../../channel-definition.ts";
import { openApi } from "../../post.ts";

/** Limits of the Message API in characters (pushover.net/api, "Limitations"). */
export const PUSHOVER_LIMITS = { message: 1_024, title: 250, url: 512, urlTitle: 100 } as const;

const MEMBER_ROWS = 3;
const CAPS = {
  title: 150,
  verdict: 80,
  headline: 160,
  facts: 120,
  commands: 90,
  top: 50,
  advice: { maxLines: 6, maxChars: 300 },
  members: { rows: MEMBER_ROWS, rowChars: 60, chars: 100 },
} as const;

/** 1 passes over the person's quiet hours, and -1 makes no sound. 2, which repeats, is left to Longwatch's reminders. */
const PRIORITIES = { critical: 1, error: 0, warning: 0, info: -1 } as const;
const QUIET = -1;

/** Returns the message without the keys of the application and the person. Its text is plain; the first link is its button. */
export function toPushoverMessage(message: AlertMessage) {
  const document = toDocument(message, "transition", CAPS);
  const { status, statusText, subject, links } = document;
  const [first] = links;
  const missing = links.length > 1 ? `\n${many(links.length - 1, "further link")}` : "";
  const room = PUSHOVER_LIMITS.message - missing.length;
  // An end and a recommendation are news for which nobody is woken.
  const isQuiet = status !== "firing" || (message.reason !== "first" && !needsNotification(message));
  return {
    title: cutText(
      breakLinks(subject === "" ? statusText : `${statusText} · ${subject}`),
      PUSHOVER_LIMITS.title,
    ),
    message: `${fitPlain(leaveOut(document, "links"), breakLinks, room, countCharacters) || statusText}${missing}`,
    priority: isQuiet ? QUIET : PRIORITIES[message.severity],
    timestamp: Math.floor((message.endedAt ?? message.startedAt) / 1_000),
    ...(first === undefined
      ? {}
      : { url: first.href, url_title: cutText(first.title, PUSHOVER_LIMITS.urlTitle) }),
  };
}

const settings = {
  /** The token of an application that is registered at Pushover. */
  token: secretText,
  /** The key of a person or of a delivery group. */
  user: secretText,
  /** The address of the Message API. Default: `https://api.pushover.net/1/messages.json`. */
  url: z.url().optional(),
  ...textSettings,
};

const API_URL = "https://api.pushover.net/1/messages.json";

/**
 * Sends to Pushover's Message API, which cannot edit and has no idempotency key: after a lost reply the message appears
 * twice. 429 also means that the application has used its messages of the month.
 * @throws {UsageError} for a bad URL or key
 */
function createSender(options: SenderOptions<typeof settings>): Notifier["send"] {
  const { token, user, url = API_URL } = options;
  const call = openApi(options, {
    url: createSecret(url),
    credentials: { token, user },
    answer: z.object({ status: z.literal(1), request: z.string() }),
    phrases: ["application token is invalid", "user identifier is not a valid user", "user key is invalid"],
  });
  return async (message, sending) => {
    await call({ token: token.reveal(), user: user.reveal(), ...toPushoverMessage(message) }, sending);
    return { providerReference: null };
  };
}

export const pushover = defineChannel({
  kind: "pushover",
  settings,
  example: { token: "example-token", user: "example-user" },
  capabilities: {
    ...POSTED_CHAT,
    rate: { perMinute: 10, digest: { in: "list", maxChars: 800, charsBeside: 2 } },
    limits: { message: { most: 2_048, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
  render: (message) => [toPushoverMessage(message)],
  createSender,
});
