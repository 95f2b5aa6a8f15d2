import { z } from "zod";
import type { AlertMessage } from "#model/alert-message.ts";
import { defineChannel, networkSettings, type SenderOptions, secretText } from "../../channel-definition.ts";
import { needsNotification } from "../../message/needs-notification.ts";
import type { Notifier } from "../../notifier.ts";
import { sendParts } from "../../send-parts.ts";
import { SLACK_LIMITS } from "../slack/slack-block.ts";
import { MEMBER_ROWS, toSlackMessage, toSlackParts, toWholeSlackMessage } from "../slack/slack-blocks.ts";
import { openSlackApi, type SlackApi, type SlackPlace } from "./slack-api.ts";

const settings = {
  /** `xoxb-...` with the scope `chat:write`. */
  token: secretText,
  /** An id such as `C0123ABCD`, or a name with `#`. */
  channel: z.string().regex(/^(?:[A-Z0-9]{1,30}|#[^\s#]{1,80})$/u, "must be a channel's id, or #name"),
  /** Base address of the Web API. Default: `https://slack.com/api`. */
  url: z.url().optional(),
  ...networkSettings,
};

type Options = SenderOptions<typeof settings>;

/** Reads a reference such as `C0123ABC:1732197780.000100`. */
function readReference(reference: string | null): SlackPlace | null {
  const [, channel, ts] = /^([A-Z0-9]{1,30}):(\d{1,20}\.\d{1,10})$/.exec(reference ?? "") ?? [];
  return channel === undefined || ts === undefined ? null : { channel, ts };
}

/** Returns the reference of a message; null if no later transition could find the message. */
function toReference(place: SlackPlace | null): string | null {
  const reference = place === null ? null : `${place.channel}:${place.ts}`;
  return readReference(reference) === null ? null : reference;
}

/** Returns false if the message can no longer be updated. */
async function update(
  api: SlackApi,
  posted: SlackPlace,
  message: AlertMessage,
  signal: AbortSignal,
): Promise<boolean> {
  if (!(await api.update(posted, toWholeSlackMessage(message), signal))) return false;
  if (needsNotification(message)) {
    const { text } = toSlackMessage(message);
    await api.post({ channel: posted.channel, thread_ts: posted.ts, reply_broadcast: true, text }, signal);
  }
  return true;
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
    const { signal } = sending;
    const parts = toSlackParts(message);
    return sendParts(parts.length + 1, sending, async (index, reference) => {
      const posted = readReference(reference);
      const part = parts[index - 1];
      if (part !== undefined) {
        const where = posted === null ? { channel } : { channel: posted.channel, thread_ts: posted.ts };
        await api.post({ ...where, ...part }, signal);
        return reference;
      }
      if (posted !== null && (await update(api, posted, message, signal))) return reference;
      return toReference(await api.post({ channel, ...toWholeSlackMessage(message) }, signal));
    });
  };
}

export const slackBot = defineChannel({
  kind: "slack-bot",
  settings,
  example: { token: "xoxb-example-token", channel: "#alerts" },
  capabilities: {
    rate: { perMinute: 30, digest: { in: "list", maxChars: 9_000, charsBeside: 2 } },
    longestPauseMs: 2 * 60_000,
    laterTransitions: "update-in-place",
    showsAcknowledgements: true,
    renewAfterMs: null,
    limits: { message: { most: SLACK_LIMITS.total, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
  render: (message) => [toWholeSlackMessage(message), ...toSlackParts(message)],
  createSender,
});
