import { createHash } from "node:crypto";
import { z } from "zod";
import type { AlertMessage } from "#model/alert-message.ts";
import { ALERT_FORMATS, type AlertFormat } from "#model/kinds.ts";
import { defineChannel, networkSettings, type SenderOptions, secretText } from "../../channel-definition.ts";
import { openEndpoint } from "../../endpoint.ts";
import type { Notifier } from "../../notifier.ts";
import { POST_TIMEOUT_MS, post } from "../../post.ts";
import { sendParts } from "../../send-parts.ts";
import { toOcsfFinding } from "./to-ocsf-finding.ts";
import { MAX_BODY_BYTES, MEMBER_ROWS, toWebhookBodies } from "./webhook-body.ts";
import { findSecretMistake, signWebhook } from "./webhook-signature.ts";

const settings = {
  /** The whole URL is secret: anyone with its path and query can post. */
  url: secretText,
  /** `whsec_...`. Give the new and the old secret while a receiver changes its secret. */
  secrets: z.array(secretText).min(1),
  /** ocsf: one Detection Finding of OCSF 1.8 for each transition. Default: standard. */
  format: z.enum(ALERT_FORMATS).optional(),
  ...networkSettings,
};

type Options = SenderOptions<typeof settings>;

/**
 * Returns the delivery key as a header value: the key itself if it is valid there and contains no separator of the
 * signed text, else its hash.
 */
function toWebhookId(deliveryKey: string): string {
  if (/^[\w-]{1,128}$/.test(deliveryKey)) return deliveryKey;
  return `msg_${createHash("sha256").update(deliveryKey).digest("base64url")}`;
}

function renderWebhook(
  message: AlertMessage,
  atMs: number,
  format: AlertFormat = "standard",
): readonly string[] {
  if (format === "ocsf") return [toOcsfFinding(message, atMs)];
  const { first, following } = toWebhookBodies(message, atMs);
  return [first, ...following];
}

/**
 * Sends signed JSON by Standard Webhooks 1.0. `webhook-id` is the same for every attempt; the timestamp is that of the
 * attempt.
 * @throws {UsageError} for a bad URL or secret, listing every mistake
 */
function createSender(options: Options): Notifier["send"] {
  const { name, secrets, clock } = options;
  const mistakes = secrets.flatMap((secret, index) => {
    const mistake = findSecretMistake(secret);
    return mistake === null ? [] : [`secret ${index + 1} ${mistake}`];
  });
  if (secrets.length === 0) mistakes.push("needs a secret with which to sign messages");
  const endpoint = openEndpoint(name, options.url, options.network ?? {}, mistakes);

  return async (message, sending) => {
    const atMs = clock();
    const timestamp = String(Math.floor(atMs / 1_000));
    const bodies = renderWebhook(message, atMs, options.format);
    return sendParts(bodies.length, sending, async (index) => {
      const { deliveryKey, signal } = sending;
      const id = toWebhookId(index === 0 ? deliveryKey : `${deliveryKey}-members-${index}`);
      const body = bodies[index] ?? "";
      await post(endpoint, {
        headers: {
          "webhook-id": id,
          "webhook-timestamp": timestamp,
          "webhook-signature": signWebhook(secrets, { id, timestamp, body }),
        },
        body,
        timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
        clock,
        signal,
      });
      return null;
    });
  };
}

export const webhook = defineChannel({
  kind: "webhook",
  settings,
  example: {
    url: "https://hooks.example/longwatch/example-path",
    secrets: [`whsec_${Buffer.alloc(32, "example").toString("base64")}`],
  },
  capabilities: {
    rate: { perMinute: 120, digest: { in: "list", maxChars: 16_000, charsBeside: 84 } },
    longestPauseMs: 60_000,
    laterTransitions: "post-anew",
    showsAcknowledgements: false,
    renewAfterMs: null,
    limits: { message: { most: MAX_BODY_BYTES, unit: "bytes" }, memberRows: MEMBER_ROWS },
  },
  render: (message, atMs) => renderWebhook(message, atMs),
  createSender,
});
