import type { Clock } from "../clock.ts";
import type { Secret } from "../secret.ts";
import { openEndpoint } from "./endpoint.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import type { Notifier } from "./notifier.ts";
import { POST_TIMEOUT_MS, post } from "./post.ts";
import { toSlackMessage } from "./slack-blocks.ts";

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
 * twice.
 * @throws {UsageError} for a bad URL
 */
export function createSlackNotifier(options: SlackOptions): Notifier {
  const endpoint = openEndpoint(options.name, options.url, options.network ?? {});
  return {
    name: options.name,
    kind: "slack",
    async send(message, { signal }) {
      const body = { ...toSlackMessage(message), mrkdwn: false, unfurl_links: false, unfurl_media: false };
      await post(endpoint, {
        headers: {},
        body: JSON.stringify(body),
        timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
        clock: options.clock,
        signal,
      });
      return { providerReference: null };
    },
  };
}
