import { createHmac } from "node:crypto";
import type { Secret } from "#lib/secret.ts";

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
