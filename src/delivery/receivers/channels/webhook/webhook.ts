/** The channel of a webhook, and its signature. */
import { createHash, createHmac } from "node:crypto";
import { z } from "zod";
import type { Secret } from "#lib/secret.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { ALERT_FORMATS, type AlertFormat } from "#model/kinds.ts";
import {
  defineChannel,
  type Notifier,
  networkSettings,
  type SenderOptions,
  secretText,
} from "../../channel-definition.ts";
import { openEndpoint } from "../../endpoint.ts";
import { postParts } from "../../post.ts";
import { toOcsfFinding } from "./to-ocsf-finding.ts";
import { MAX_BODY_BYTES, MEMBER_ROWS, toWebhookBodies } from "./webhook-body.ts";

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
    const parts = renderWebhook(message, atMs, options.format).map((body, index) => {
      const { deliveryKey } = sending;
      const id = toWebhookId(index === 0 ? deliveryKey : `${deliveryKey}-members-${index}`);
      const signature = signWebhook(secrets, { id, timestamp, body });
      const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature };
      return { endpoint, headers, body };
    });
    return postParts(parts, options, sending);
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

const PREFIX = "whsec_";
const MIN_BYTES = 24;
const MAX_BYTES = 64;

function decode(secret: Secret): Buffer {
  return Buffer.from(secret.reveal().slice(PREFIX.length), "base64");
}

/**
 * Returns the rule of Standard Webhooks 1.0 that a signing secret breaks; null if it breaks none. Never quotes the
 * secret.
 */
export function findSecretMistake(secret: Secret): string | null {
  const value = secret.reveal();
  if (!value.startsWith(PREFIX)) return `must start with ${PREFIX}`;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(value.slice(PREFIX.length))) return "must be base64 after its prefix";
  const bytes = decode(secret).length;
  if (bytes < MIN_BYTES || bytes > MAX_BYTES) return `must hold ${MIN_BYTES} to ${MAX_BYTES} bytes`;
  return null;
}

/**
 * Returns the `webhook-signature` header with one signature per secret, so that a receiver may have the old or the new
 * secret.
 */
export function signWebhook(
  secrets: readonly Secret[],
  { id, timestamp, body }: { id: string; timestamp: string; body: string },
): string {
  return secrets
    .map((secret) =>
      createHmac("sha256", decode(secret)).update(`${id}.${timestamp}.${body}`).digest("base64"),
    )
    .map((signature) => `v1,${signature}`)
    .join(" ");
}
