import type { AlertMessage } from "#model/alert-message.ts";
import {
  defineChannel,
  type Notifier,
  networkSettings,
  type SenderOptions,
  secretText,
} from "../../channel-definition.ts";
import { openEndpoint } from "../../endpoint.ts";
import { POST_TIMEOUT_MS, post, sendParts } from "../../post.ts";
import { MEMBER_ROWS, SLACK_LIMITS, toSlackMessage, toSlackParts } from "./slack-blocks.ts";

const settings = {
  /** The URL of an incoming webhook. Anyone with the URL can post. */
  url: secretText,
  ...networkSettings,
};

type Options = SenderOptions<typeof settings>;

/** Returns the message that the channel shows, and further messages for the rules that do not fit into it. */
function renderSlack(message: AlertMessage) {
  return [toSlackMessage(message), ...toSlackParts(message)];
}

/**
 * Sends to Slack's incoming webhook, which cannot edit and has no idempotency key: after a lost reply the channel shows
 * the message twice. A long list of rules follows in further messages.
 * @throws {UsageError} for a bad URL
 */
function createSender(options: Options): Notifier["send"] {
  const endpoint = openEndpoint(options.name, options.url, options.network ?? {});
  return async (message, sending) => {
    const parts = renderSlack(message);
    return sendParts(parts.length, sending, async (index) => {
      const body = { ...parts[index], mrkdwn: false, unfurl_links: false, unfurl_media: false };
      await post(endpoint, {
        headers: {},
        body: JSON.stringify(body),
        timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
        clock: options.clock,
        signal: sending.signal,
        confirms: ({ body: answer }) => answer.trim() === "ok",
      });
      return null;
    });
  };
}

export const slack = defineChannel({
  kind: "slack",
  settings,
  example: { url: "https://hooks.slack.example/services/T0/B0/example-path" },
  capabilities: {
    rate: { perMinute: 30, digest: { in: "list", maxChars: 9_000, charsBeside: 2 } },
    longestPauseMs: 2 * 60_000,
    laterTransitions: "post-anew",
    showsAcknowledgements: false,
    renewAfterMs: null,
    limits: { message: { most: SLACK_LIMITS.total, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
  render: renderSlack,
  createSender,
});
