/** The channel of a Slack app. */

import { z } from "zod";
import { createSecret, type Secret } from "#lib/secret.ts";
import {
  defineChannel,
  EDITED_CHAT,
  type Notifier,
  type SenderOptions,
  type SendOptions,
  secretText,
  textSettings,
} from "../../channel-definition.ts";
import { DeliveryError } from "../../delivery-error.ts";
import { openApi, sendInPlace, sendParts } from "../../post.ts";
import {
  MEMBER_ROWS,
  NO_PREVIEWS,
  SLACK_LIMITS,
  toSlackMessage,
  toSlackParts,
  toWholeSlackMessage,
} from "../slack/slack.ts";

const settings = {
  /** `xoxb-...` with the scope `chat:write`. */
  token: secretText,
  /** An id such as `C0123ABCD`, or a name with `#`. */
  channel: z.string().regex(/^(?:[A-Z0-9]{1,30}|#[^\s#]{1,80})$/u, "must be a channel's id, or #name"),
  /** Base address of the Web API. Default: `https://slack.com/api`. */
  url: z.url().optional(),
  ...textSettings,
};

type Options = SenderOptions<typeof settings>;

/** Reads a reference such as `C0123ABC:1732197780.000100`. */
function readReference(reference: string | null): SlackPlace | null {
  const [, channel, ts] = /^([A-Z0-9]{1,30}):(\d{1,20}\.\d{1,10})$/.exec(reference ?? "") ?? [];
  return channel === undefined || ts === undefined ? null : { channel, ts };
}

/**
 * Sends to Slack with a bot token: one message per alert, updated in place. An update notifies nobody, so a transition
 * that needs a notification is also posted in the thread and shown in the channel. A long list of rules is in the
 * thread only. There is no idempotency key: after a lost reply the channel shows the message twice.
 * @throws {UsageError} for a bad URL or token
 */
function createSender({ channel, ...options }: Options): Notifier["send"] {
  const api = openSlackApi(options);
  return async (message, sending) => {
    const parts = toSlackParts(message);
    return sendParts(parts.length + 1, sending, async (index, reference) => {
      const posted = readReference(reference);
      const part = parts[index - 1];
      if (part !== undefined) {
        const where = posted === null ? { channel } : { channel: posted.channel, thread_ts: posted.ts };
        await api.post({ ...where, ...part }, sending);
        return reference;
      }
      const whole = toWholeSlackMessage(message);
      const place = await sendInPlace(message, posted, {
        edit: (at) => api.update(at, whole, sending),
        note: (at) => {
          const thread = { channel: at.channel, thread_ts: at.ts, reply_broadcast: true };
          return api.post({ ...thread, text: toSlackMessage(message).text }, sending);
        },
        post: () => api.post({ channel, ...whole }, sending),
      });
      const written = place === null ? null : `${place.channel}:${place.ts}`;
      // By any other text no later transition could find the message.
      return readReference(written) === null ? null : written;
    });
  };
}

export const slackBot = defineChannel({
  kind: "slack-bot",
  settings,
  example: { token: "xoxb-example-token", channel: "#alerts" },
  capabilities: {
    ...EDITED_CHAT,
    rate: { perMinute: 30, digest: { in: "list", maxChars: 9_000, charsBeside: 2 } },
    limits: { message: { most: SLACK_LIMITS.total, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
  render: (message) => [toWholeSlackMessage(message), ...toSlackParts(message)],
  createSender,
});

/** Identifies a message: the id of its channel, which an edit needs, and its timestamp. */
interface SlackPlace {
  readonly channel: string;
  readonly ts: string;
}

/** The Web API answers 200 to every request; `ok` is the result. */
const verdict = z.object({
  ok: z.boolean(),
  error: z.string().optional(),
  channel: z.string().optional(),
  ts: z.string().optional(),
});
type Verdict = z.infer<typeof verdict>;

/** Slack's own temporary errors. The request is tried again. */
const TRANSIENT = new Set([
  "fatal_error",
  "internal_error",
  "request_timeout",
  "service_unavailable",
  "team_added_to_org",
]);
const BUSY = new Set(["ratelimited", "rate_limited", "message_limit_exceeded"]);
/** Errors for a message that was deleted or can no longer be edited. */
const UNEDITABLE = new Set([
  "message_not_found",
  "cant_update_message",
  "edit_window_closed",
  "channel_not_found",
  "is_inactive",
]);

function toFailure(answer: Verdict | null, host: string, token: Secret): DeliveryError {
  const given = answer?.error ?? "";
  const isWord = /^[a-z]+(?:_[a-z]+)*$/.test(given) && given.length <= 40 && !token.reveal().includes(given);
  const said = answer === null ? " with a body that cannot be read" : isWord ? `, ${given}` : "";
  const text = `${host} answered 200${said}`;
  if (BUSY.has(given)) return new DeliveryError({ code: "ENDPOINT_BUSY", disposition: "wait", text });
  if (answer === null || TRANSIENT.has(given))
    return new DeliveryError({ code: "ENDPOINT_UNAVAILABLE", disposition: "retry", text });
  return new DeliveryError({ code: "ENDPOINT_REJECTED", disposition: "give-up", text });
}

/**
 * Returns the methods of Slack's Web API that a channel needs. They throw DeliveryError, or the signal's reason.
 * @throws {UsageError} for a bad URL or token
 */
function openSlackApi(options: Omit<Options, "channel">) {
  const { token, url = "https://slack.com/api" } = options;
  const authorization = `Bearer ${token.reveal()}`;
  const headers = { "content-type": "application/json; charset=utf-8", authorization };
  const call = openApi(options, { url: createSecret(url), credentials: { token }, headers, answer: verdict });
  const fail = (answer: Verdict | null) => toFailure(answer, new URL(url).host, token);
  return {
    /** Returns where the message was posted; null if Slack does not say. */
    async post(body: object, sending: SendOptions): Promise<SlackPlace | null> {
      const { answer } = await call({ ...NO_PREVIEWS, ...body }, sending, { path: "/chat.postMessage" });
      if (answer?.ok !== true) throw fail(answer);
      const { channel, ts } = answer;
      return channel === undefined || ts === undefined ? null : { channel, ts };
    },
    /** Returns false if the message can no longer be edited. */
    async update(place: SlackPlace, body: object, sending: SendOptions): Promise<boolean> {
      const { answer } = await call({ ...place, ...body }, sending, { path: "/chat.update" });
      if (answer?.ok === true) return true;
      if (UNEDITABLE.has(answer?.error ?? "")) return false;
      throw fail(answer);
    },
  };
}
