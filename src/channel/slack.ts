import type { Clock } from "../lib/clock.ts";
import type { Secret } from "../lib/secret.ts";
import { openEndpoint } from "./endpoint.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import type { Notifier } from "./notifier.ts";
import { POST_TIMEOUT_MS, post } from "./post.ts";
import { sendParts } from "./send-parts.ts";
import { toSlackMessage, toSlackParts } from "./slack-blocks.ts";

export interface SlackOptions {
  readonly name: string;
  /** Of an incoming webhook: a secret as a whole. */
  readonly url: Secret;
  readonly clock: Clock;
  readonly network?: NetworkPolicy;
  readonly timeoutMs?: number;
}

/**
 * Slack's incoming webhook. It cannot edit and has no idempotency key: after a lost reply the channel shows the message
 * twice. A long list of rules follows in further messages.
 * @throws {UsageError} for a bad URL
 */
export function createSlackNotifier(options: SlackOptions): Notifier {
  const endpoint = openEndpoint(options.name, options.url, options.network ?? {});
  return {
    name: options.name,
    kind: "slack",
    async send(message, sending) {
      const parts = [toSlackMessage(message), ...toSlackParts(message)];
      return sendParts(parts.length, sending, async (index) => {
        const body = { ...parts[index], mrkdwn: false, unfurl_links: false, unfurl_media: false };
        await post(endpoint, {
          headers: {},
          body: JSON.stringify(body),
          timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
          clock: options.clock,
          signal: sending.signal,
        });
        return null;
      });
    },
  };
}
