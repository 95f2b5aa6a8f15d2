import { createHash } from "node:crypto";
import type { Clock } from "../lib/clock.ts";
import type { Secret } from "../lib/secret.ts";
import { openEndpoint } from "./endpoint.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import type { Notifier } from "./notifier.ts";
import { POST_TIMEOUT_MS, post } from "./post.ts";
import { sendParts } from "./send-parts.ts";
import { toWebhookBodies } from "./webhook-body.ts";
import { findSecretMistake, signWebhook } from "./webhook-signature.ts";

export interface WebhookOptions {
  readonly name: string;
  readonly url: Secret;
  /** `whsec_...`; more than one while a receiver moves from the old to the new. */
  readonly secrets: readonly Secret[];
  readonly clock: Clock;
  readonly network?: NetworkPolicy;
  readonly timeoutMs?: number;
}

/** The delivery key as a header: itself where it may be one and holds no separator of the signed text, else its hash. */
function toWebhookId(deliveryKey: string): string {
  if (/^[\w-]{1,128}$/.test(deliveryKey)) return deliveryKey;
  return `msg_${createHash("sha256").update(deliveryKey).digest("base64url")}`;
}

/**
 * Signed JSON by Standard Webhooks 1.0: `webhook-id` is the same for every attempt, the timestamp is the attempt's.
 * @throws {UsageError} for a bad URL or secret, listing every mistake
 */
export function createWebhookNotifier(options: WebhookOptions): Notifier {
  const { name, secrets, clock } = options;
  const mistakes = secrets.flatMap((secret, index) => {
    const mistake = findSecretMistake(secret);
    return mistake === null ? [] : [`secret ${index + 1} ${mistake}`];
  });
  if (secrets.length === 0) mistakes.push("needs a secret to sign with");
  const endpoint = openEndpoint(name, options.url, options.network ?? {}, mistakes);

  return {
    name,
    kind: "webhook",
    async send(message, sending) {
      const atMs = clock();
      const timestamp = String(Math.floor(atMs / 1_000));
      const { first, following } = toWebhookBodies(message, atMs);
      const bodies = [first, ...following];
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
    },
  };
}
