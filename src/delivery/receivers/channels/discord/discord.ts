import { createHash } from "node:crypto";
import { z } from "zod";
import { needsNotification } from "#delivery/rules/message/outline-lines.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import {
  defineChannel,
  type Notifier,
  networkSettings,
  type SenderOptions,
  secretText,
} from "../../channel-definition.ts";
import { readReply } from "../../delivery-error.ts";
import { extendEndpoint, openEndpoint } from "../../endpoint.ts";
import { POST_TIMEOUT_MS, post, type Reply } from "../../post.ts";
import {
  DISCORD_FILE,
  DISCORD_LIMITS,
  type DiscordMessage,
  MEMBER_ROWS,
  toDiscordFile,
  toDiscordMessage,
  toDiscordNote,
} from "./discord-message.ts";

const settings = {
  /** The URL of a webhook; `?thread_id=` posts into a thread. Anyone with the URL can post. */
  url: secretText,
  ...networkSettings,
};

type Options = SenderOptions<typeof settings>;

/** Discord answers with the whole message. */
const MAX_REPLY_BYTES = 256 * 1_024;

const created = z.object({ id: z.string().regex(/^\d{1,20}$/) });

/** Returns the request's body: JSON, or form data if there is a file. */
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

interface Content {
  readonly message: DiscordMessage;
  readonly file?: string | null;
}

const toContent = (message: AlertMessage): Content => ({
  message: toDiscordMessage(message),
  file: toDiscordFile(message),
});

type Send = (id: string | null, content: Content, signal: AbortSignal) => Promise<Reply>;

/** Posts a message, or edits the message with an id. A 404 to an edit means that the message was deleted. */
function openWebhook({ name, url, clock, network = {}, timeoutMs = POST_TIMEOUT_MS }: Options): Send {
  const endpoint = openEndpoint(name, url, network);
  return (id, { message, file = null }, signal) => {
    const confirms = ({ body }: { readonly body: string }) => readReply(body, created) !== null;
    const request = {
      ...toBody(message, file),
      timeoutMs,
      clock,
      signal,
      confirms,
      maxReplyBytes: MAX_REPLY_BYTES,
    };
    // Without `wait`, Discord answers before it has stored the message, and without the message's id.
    if (id === null)
      return post(extendEndpoint(endpoint, "", { wait: "true" }), { method: "POST", ...request });
    return post(extendEndpoint(endpoint, `/messages/${id}`), { method: "PATCH", accepts: [404], ...request });
  };
}

/** Returns false if the message was deleted. If the webhook was deleted, posting a new message will fail as well. */
async function update(send: Send, id: string, message: AlertMessage, signal: AbortSignal): Promise<boolean> {
  const { status } = await send(id, toContent(message), signal);
  if (status === 404) return false;
  if (needsNotification(message)) await send(null, { message: toDiscordNote(message) }, signal);
  return true;
}

/**
 * Sends to Discord's webhook: one message per alert, updated in place. An update notifies nobody, so a transition that
 * needs a notification is also posted as a note. A long list of rules is attached as a file. There is no idempotency
 * key: after a lost reply the channel shows the message twice.
 * @throws {UsageError} for a bad URL
 */
function createSender(options: Options): Notifier["send"] {
  const send = openWebhook(options);
  return async (message, { signal, providerReference }) => {
    const posted = created.safeParse({ id: providerReference }).data?.id;
    if (posted !== undefined && (await update(send, posted, message, signal)))
      return { providerReference: posted };
    const { body } = await send(null, toContent(message), signal);
    return { providerReference: readReply(body, created)?.id ?? null };
  };
}

/** Returns the message, and the attached list of rules if it does not fit into the message. */
function renderDiscord(message: AlertMessage): readonly (DiscordMessage | string)[] {
  const file = toDiscordFile(message);
  return [toDiscordMessage(message), ...(file === null ? [] : [file])];
}

export const discord = defineChannel({
  kind: "discord",
  settings,
  example: { url: "https://discord.example/api/webhooks/1/example-path" },
  capabilities: {
    rate: { perMinute: 20, digest: { in: "list", maxChars: 2_800, charsBeside: 2 } },
    longestPauseMs: 2 * 60_000,
    laterTransitions: "update-in-place",
    showsAcknowledgements: true,
    renewAfterMs: null,
    limits: { message: { most: DISCORD_LIMITS.total, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
  render: renderDiscord,
  createSender,
});
