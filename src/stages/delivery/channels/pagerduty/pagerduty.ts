import { z } from "zod";
import { createSecret } from "#lib/secret.ts";
import { defineChannel, networkSettings, type SenderOptions, secretText } from "../../channel-definition.ts";
import { openEndpoint } from "../../endpoint.ts";
import type { Notifier } from "../../notifier.ts";
import { POST_TIMEOUT_MS, post } from "../../post.ts";
import { readReply } from "../../read-reply.ts";
import { MEMBER_ROWS, PAGERDUTY_LIMITS, toPagerDutyEvent } from "./pagerduty-event.ts";

const settings = {
  /** The integration key of an Events API v2 integration. */
  routingKey: secretText,
  /** Default: the US service region. For the EU it is `https://events.eu.pagerduty.com/v2/enqueue`. */
  url: z.url().optional(),
  ...networkSettings,
};

const taken = z.object({ status: z.literal("success") });

const example = { routingKey: "example-routing-key-of-32-signs." };

type Options = SenderOptions<typeof settings>;

const US_URL = "https://events.pagerduty.com/v2/enqueue";

/**
 * Sends to PagerDuty's Events API v2. Because of the dedup key, an event that arrives twice is one incident.
 * @throws {UsageError} for a bad URL or key
 */
function createSender(options: Options): Notifier["send"] {
  const { name, routingKey, clock } = options;
  const isKey = /^[\x21-\x7e]{32}$/.test(routingKey.reveal());
  const mistakes = isKey ? [] : ["routingKey: must be 32 characters"];
  const endpoint = openEndpoint(name, createSecret(options.url ?? US_URL), options.network ?? {}, mistakes);
  return async (message, { signal }) => {
    await post(endpoint, {
      headers: {},
      body: JSON.stringify({ routing_key: routingKey.reveal(), ...toPagerDutyEvent(message) }),
      timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
      clock,
      signal,
      confirms: ({ body }) => readReply(body, taken) !== null,
      secrets: [routingKey],
    });
    return { providerReference: null };
  };
}

export const pagerduty = defineChannel({
  kind: "pagerduty",
  settings,
  example,
  capabilities: {
    rate: { perMinute: 100, digest: null },
    longestPauseMs: 60_000,
    laterTransitions: "same-incident",
    showsAcknowledgements: true,
    renewAfterMs: null,
    limits: { message: { most: PAGERDUTY_LIMITS.bytes, unit: "bytes" }, memberRows: MEMBER_ROWS },
  },
  render: (message) => [{ routing_key: example.routingKey, ...toPagerDutyEvent(message) }],
  createSender,
});
