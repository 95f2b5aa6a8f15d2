import { createHash } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../lib/clock.ts";
import type { Secret } from "../lib/secret.ts";
import type { AlertMessage } from "../model/alert-message.ts";
import {
  DISCORD_FILE,
  type DiscordMessage,
  toDiscordFile,
  toDiscordMessage,
  toDiscordNote,
} from "./discord-message.ts";
import { extendEndpoint, openEndpoint } from "./endpoint.ts";
import { mustRing } from "./must-ring.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import type { Notifier } from "./notifier.ts";
import { POST_TIMEOUT_MS, post, type Reply } from "./post.ts";
import { readReply } from "./read-reply.ts";

export interface DiscordOptions {
  readonly name: string;
  /** Of a webhook, also with `?thread_id=`: a secret as a whole. */
  readonly url: Secret;
  readonly clock: Clock;
  readonly network?: NetworkPolicy;
  readonly timeoutMs?: number;
}

const created = z.object({ id: z.string().regex(/^\d{1,20}$/) });

/** The request's body, as JSON or, with a file, as form data. */
function toBody(message: DiscordMessage, file: string | null) {
  if (file === null) return { headers: {}, body: JSON.stringify(message) };
  const payload = JSON.stringify({ ...message, attachments: [{ id: 0, filename: DISCORD_FILE }] });
  const boundary = `longwatch-${createHash("sha256").update(payload).update(file).digest("hex")}`;
  const parts = [
    `content-disposition: form-data; name="payload_json"\r\ncontent-type: application/json\r\n\r\n${payload}`,
    `content-disposition: form-data; name="files[0]"; filename="${DISCORD_FILE}"\r\ncontent-type: text/plain; charset=utf-8\r\n\r\n${file}`,
  ];
  const body = `${parts.map((part) => `--${boundary}\r\n${part}\r\n`).join("")}--${boundary}--\r\n`;
  return { headers: { "content-type": `multipart/form-data; boundary=${boundary}` }, body };
}

interface Said {
  readonly message: DiscordMessage;
  readonly file?: string | null;
}

const toSaid = (message: AlertMessage): Said => ({
  message: toDiscordMessage(message),
  file: toDiscordFile(message),
});

type Send = (id: string | null, said: Said, signal: AbortSignal) => Promise<Reply>;

/** Posts, or edits the message of an id; that one is gone where the answer to an edit is 404. */
function openWebhook({ name, url, clock, network = {}, timeoutMs = POST_TIMEOUT_MS }: DiscordOptions): Send {
  const endpoint = openEndpoint(name, url, network);
  return (id, { message, file = null }, signal) => {
    const request = { ...toBody(message, file), timeoutMs, clock, signal };
    // Without `wait` the answer comes before the message is stored, and without its id.
    if (id === null)
      return post(extendEndpoint(endpoint, "", { wait: "true" }), { method: "POST", ...request });
    return post(extendEndpoint(endpoint, `/messages/${id}`), { method: "PATCH", accepts: [404], ...request });
  };
}

/** False where someone deleted the message, or the webhook is gone, which a new message then finds out. */
async function edit(send: Send, id: string, message: AlertMessage, signal: AbortSignal): Promise<boolean> {
  const { status } = await send(id, toSaid(message), signal);
  if (status === 404) return false;
  if (mustRing(message)) await send(null, { message: toDiscordNote(message) }, signal);
  return true;
}

/**
 * Discord's webhook: one message per alert, edited in place; what must ring is also said anew, because an edit rings
 * nowhere. A long list of rules is attached as a file. There is no idempotency key: after a lost reply the channel shows the message twice.
 * @throws {UsageError} for a bad URL
 */
export function createDiscordNotifier(options: DiscordOptions): Notifier {
  const send = openWebhook(options);
  return {
    name: options.name,
    kind: "discord",
    async send(message, { signal, providerReference }) {
      const told = created.safeParse({ id: providerReference }).data?.id;
      if (told !== undefined && (await edit(send, told, message, signal))) return { providerReference: told };
      const { body } = await send(null, toSaid(message), signal);
      return { providerReference: readReply(body, created)?.id ?? null };
    },
  };
}
