import { z } from "zod";
import type { Clock } from "#lib/clock.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { DeliveryError } from "../../delivery-error.ts";
import { extendEndpoint, openEndpoint } from "../../endpoint.ts";
import type { NetworkPolicy } from "../../network-policy.ts";
import { POST_TIMEOUT_MS, post } from "../../post.ts";
import { readReply } from "../../read-reply.ts";

export interface SlackApiOptions {
  /** The channel's name in the configuration. */
  readonly name: string;
  /** `xoxb-...` with the scope `chat:write`. */
  readonly token: Secret;
  /** Base address of the Web API. Default: Slack's own. */
  readonly url?: string | undefined;
  readonly clock: Clock;
  readonly network?: NetworkPolicy;
  readonly timeoutMs?: number;
}

/** Identifies a message: the id of its channel, which an edit needs, and its timestamp. */
export interface SlackPlace {
  readonly channel: string;
  readonly ts: string;
}

/** Both methods throw DeliveryError, or the signal's reason. */
export interface SlackApi {
  /** Returns where the message was posted; null if Slack does not say. */
  post(body: object, signal: AbortSignal): Promise<SlackPlace | null>;
  /** Returns false if the message can no longer be edited. */
  update(place: SlackPlace, body: object, signal: AbortSignal): Promise<boolean>;
}

const API_URL = "https://slack.com/api";
const QUIET = { unfurl_links: false, unfurl_media: false, mrkdwn: false };

/** The Web API answers 200 to every request; `ok` is the result. */
const verdict = z.object({
  ok: z.boolean(),
  error: z.string().optional(),
  channel: z.string().optional(),
  ts: z.string().optional(),
});
type Verdict = z.infer<typeof verdict>;

/** Slack's own temporary errors. The request is tried again. */
const TRANSIENT = new Set([
  "fatal_error",
  "internal_error",
  "request_timeout",
  "service_unavailable",
  "team_added_to_org",
]);
const BUSY = new Set(["ratelimited", "rate_limited", "message_limit_exceeded"]);
/** Errors for a message that was deleted or can no longer be edited. */
const UNEDITABLE = new Set([
  "message_not_found",
  "cant_update_message",
  "edit_window_closed",
  "channel_not_found",
  "is_inactive",
]);

function toFailure(answer: Verdict | null, host: string, token: Secret): DeliveryError {
  if (answer === null) {
    const text = `${host} answered 200 with a body that cannot be read`;
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
 * Creates a client for the methods of Slack's Web API that a channel needs. It does not connect yet.
 * @throws {UsageError} for a bad URL or token
 */
export function openSlackApi(options: SlackApiOptions): SlackApi {
  const { name, token, url = API_URL, clock, network = {}, timeoutMs = POST_TIMEOUT_MS } = options;
  const mistakes = /^[\x21-\x7e]+$/.test(token.reveal()) ? [] : ["token: must be one word"];
  const endpoint = openEndpoint(name, createSecret(url), network, mistakes);
  const type = "application/json; charset=utf-8";

  async function call(method: string, body: object, signal: AbortSignal): Promise<Verdict | null> {
    const headers = { "content-type": type, authorization: `Bearer ${token.reveal()}` };
    const request = { headers, body: JSON.stringify(body), timeoutMs, clock, signal, secrets: [token] };
    const reply = await post(extendEndpoint(endpoint, `/${method}`), request);
    return readReply(reply.body, verdict);
  }

  return {
    async post(body, signal) {
      const answer = await call("chat.postMessage", { ...QUIET, ...body }, signal);
      if (answer?.ok !== true) throw toFailure(answer, endpoint.host, token);
      const { channel, ts } = answer;
      return channel === undefined || ts === undefined ? null : { channel, ts };
    },
    async update(place, body, signal) {
      const answer = await call("chat.update", { ...place, ...body }, signal);
      if (answer?.ok === true) return true;
      if (UNEDITABLE.has(answer?.error ?? "")) return false;
      throw toFailure(answer, endpoint.host, token);
    },
  };
}
