import { z } from "zod";
import type { Clock } from "../clock.ts";
import { UsageError } from "../errors.ts";
import { createSecret, type Secret } from "../secret.ts";
import type { AlertMessage } from "./alert-message.ts";
import { DeliveryError } from "./delivery-error.ts";
import { extendEndpoint, openEndpoint } from "./endpoint.ts";
import { mustRing } from "./must-ring.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import type { Notifier } from "./notifier.ts";
import { POST_TIMEOUT_MS, post } from "./post.ts";
import { readReply } from "./read-reply.ts";
import { sendParts } from "./send-parts.ts";
import { toSlackMessage, toSlackParts, toWholeSlackMessage } from "./slack-blocks.ts";

export interface SlackBotOptions {
  readonly name: string;
  /** `xoxb-...` with the scope `chat:write`. */
  readonly token: Secret;
  /** An id, or a name with `#`. */
  readonly channel: string;
  /** Of the Web API; default Slack's own. */
  readonly url?: string | undefined;
  readonly clock: Clock;
  readonly network?: NetworkPolicy;
  readonly timeoutMs?: number;
}

const API_URL = "https://slack.com/api";
const QUIET = { unfurl_links: false, unfurl_media: false, mrkdwn: false };

/** The Web API answers 200 to everything; what it thinks is in `ok`. */
const verdict = z.object({
  ok: z.boolean(),
  error: z.string().optional(),
  channel: z.string().optional(),
  ts: z.string().optional(),
});
type Verdict = z.infer<typeof verdict>;

/** Slack's trouble, not ours: worth another attempt. */
const TRANSIENT = new Set([
  "fatal_error",
  "internal_error",
  "request_timeout",
  "service_unavailable",
  "team_added_to_org",
]);
const BUSY = new Set(["ratelimited", "rate_limited", "message_limit_exceeded"]);
/** There is nothing to edit any more, or nobody may. */
const UNEDITABLE = new Set([
  "message_not_found",
  "cant_update_message",
  "edit_window_closed",
  "channel_not_found",
  "is_inactive",
]);

/** `C0123ABC:1732197780.000100`: the channel by its id, which an edit needs, and the message in it. */
function readReference(reference: string | null): { channel: string; ts: string } | null {
  const [, channel, ts] = /^([A-Z0-9]{1,30}):(\d{1,20}\.\d{1,10})$/.exec(reference ?? "") ?? [];
  return channel === undefined || ts === undefined ? null : { channel, ts };
}

function toFailure(answer: Verdict | null, host: string, token: Secret): DeliveryError {
  if (answer === null) {
    const text = `${host} answered 200 without a verdict`;
    return new DeliveryError({ code: "ENDPOINT_UNAVAILABLE", disposition: "retry", text });
  }
  const given = answer.error ?? "";
  const isWord = /^[a-z]+(?:_[a-z]+)*$/.test(given) && given.length <= 40 && !token.reveal().includes(given);
  const text = `${host} answered 200${isWord ? `, ${given}` : ""}`;
  if (BUSY.has(given)) return new DeliveryError({ code: "ENDPOINT_BUSY", disposition: "wait", text });
  if (TRANSIENT.has(given)) {
    return new DeliveryError({ code: "ENDPOINT_UNAVAILABLE", disposition: "retry", text });
  }
  return new DeliveryError({ code: "ENDPOINT_REJECTED", disposition: "give-up", text });
}

/**
 * Slack by a bot token: one message per alert, edited in place; what must ring is also said in its thread and shown in
 * the channel, because an edit rings nowhere. A long list of rules is in the thread alone. There is no idempotency key: after a lost reply the message is there twice.
 * @throws {UsageError} for a bad URL or token
 */
export function createSlackBotNotifier(options: SlackBotOptions): Notifier {
  const { name, token, channel } = options;
  if (!/^[\x21-\x7e]+$/.test(token.reveal()))
    throw new UsageError([`channel ${name}: token: must be one word`]);
  const endpoint = openEndpoint(name, createSecret(options.url ?? API_URL), options.network ?? {});

  async function call(method: string, body: object, signal: AbortSignal): Promise<Verdict | null> {
    const reply = await post(extendEndpoint(endpoint, `/${method}`), {
      headers: {
        "content-type": "application/json; charset=utf-8",
        authorization: `Bearer ${token.reveal()}`,
      },
      body: JSON.stringify(body),
      timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
      clock: options.clock,
      signal,
      secrets: [token],
    });
    return readReply(reply.body, verdict);
  }

  async function say(body: object, signal: AbortSignal): Promise<Verdict> {
    const answer = await call("chat.postMessage", { ...QUIET, ...body }, signal);
    if (answer?.ok !== true) throw toFailure(answer, endpoint.host, token);
    return answer;
  }

  /** False where the message can be edited no more. */
  async function edit(
    told: { channel: string; ts: string },
    message: AlertMessage,
    signal: AbortSignal,
  ): Promise<boolean> {
    const answer = await call("chat.update", { ...told, ...toWholeSlackMessage(message) }, signal);
    if (answer?.ok !== true) {
      if (UNEDITABLE.has(answer?.error ?? "")) return false;
      throw toFailure(answer, endpoint.host, token);
    }
    if (mustRing(message)) {
      const { text } = toSlackMessage(message);
      await say({ channel: told.channel, thread_ts: told.ts, reply_broadcast: true, text }, signal);
    }
    return true;
  }

  /** Posted, or edited where there is something to edit; the reference to it. */
  async function sendWhole(
    message: AlertMessage,
    reference: string | null,
    signal: AbortSignal,
  ): Promise<string | null> {
    const told = readReference(reference);
    if (told !== null && (await edit(told, message, signal))) return reference;
    const answer = await say({ channel, ...toWholeSlackMessage(message) }, signal);
    const posted = `${answer.channel}:${answer.ts}`;
    return readReference(posted) === null ? null : posted;
  }

  return {
    name,
    kind: "slack-bot",
    async send(message, sending) {
      const parts = toSlackParts(message);
      return sendParts(parts.length + 1, sending, async (index, reference) => {
        const part = parts[index - 1];
        if (part === undefined) return sendWhole(message, reference, sending.signal);
        const told = readReference(reference);
        const where = told === null ? { channel } : { channel: told.channel, thread_ts: told.ts };
        await say({ ...where, ...part }, sending.signal);
        return reference;
      });
    },
  };
}
