/** Posts a request to a receiver. */
import type { Dispatcher } from "undici";
import type { Clock } from "#lib/clock.ts";
import { adviseTls, parseRetryAfter, readBody } from "#lib/http.ts";
import type { Secret } from "#lib/secret.ts";
import { startDeadline } from "#lib/waiting.ts";
import type { SendOptions, SendResult } from "./channel-definition.ts";
import { classifyStatus, DeliveryError } from "./delivery-error.ts";
import { type Endpoint, openEndpoint } from "./endpoint.ts";

/** Limit for a receiver's answer, from which usually an error word or a reference is read. */
const MAX_REPLY_BYTES = 16 * 1_024;
/** Standard Webhooks asks for 15 to 30 s. */
export const POST_TIMEOUT_MS = 20_000;

const never = new AbortController().signal;

export interface PostRequest {
  /** Default POST. */
  readonly method?: "POST" | "PATCH" | "PUT";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** Time limit of the whole exchange: resolving, connecting, sending, reading the answer. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Parts of the request, besides the path, that no error may repeat. */
  readonly secrets?: readonly Secret[];
  /** Statuses besides 2xx that are not a failure. */
  readonly accepts?: readonly number[];
  /**
   * Returns whether a 2xx answer is the one by which the vendor says that it has the message. Default: every 2xx is. A lost
   * answer is not judged. A failure that the answer names is returned as its status.
   */
  readonly confirms?: (reply: { readonly status: number; readonly body: string }) => boolean | number;
  /** A longer answer is cut. Default 16 KiB. */
  readonly maxReplyBytes?: number;
}

export interface Reply {
  readonly status: number;
  /** The answer's text, cut at `maxReplyBytes`; null if it was lost. */
  readonly body: string | null;
}

/**
 * Returns a provider's error word, such as `invalid_blocks`. Nothing else of a reply is repeated, because the reply may
 * contain the sent message.
 */
async function readErrorWord(response: Dispatcher.ResponseData, secrets: readonly Secret[]): Promise<string> {
  const body = await readBody(response.body, MAX_REPLY_BYTES, true).catch(() => Buffer.alloc(0));
  const word = body.toString("latin1").trim();
  const isWord = /^[a-z]+(?:_[a-z]+)*$/.test(word) && word.length <= 40;
  return isWord && !secrets.some((secret) => secret.reveal().includes(word)) ? `, ${word}` : "";
}

/** Returns the error for a 2xx answer of a receiver that does not have the message, or of a program in front of it. */
function toUnconfirmed(host: string, status: number, named: number | false): DeliveryError {
  const failure = named === false ? null : classifyStatus(named, null);
  const text = `${host} answered ${status}${failure === null ? "" : ` with error ${named}`}, but did not confirm the message`;
  return new DeliveryError({ ...(failure ?? { code: "ENDPOINT_UNAVAILABLE", disposition: "retry" }), text });
}

function only(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

async function readReply(
  response: Dispatcher.ResponseData,
  endpoint: Endpoint,
  { clock, secrets = [], accepts = [], maxReplyBytes = MAX_REPLY_BYTES, confirms }: PostRequest,
): Promise<Reply> {
  const { statusCode: status, headers } = response;
  const retryAfterMs = parseRetryAfter(only(headers["retry-after"]), only(headers["date"]), clock());
  const verdict = classifyStatus(status, retryAfterMs);
  if (verdict === null || accepts.includes(status)) {
    // The message was accepted, so a failure to read the rest of the answer does not count.
    const body = await readBody(response.body, maxReplyBytes, true).catch(() => null);
    const reply = { status, body: body === null ? null : body.toString() };
    const confirmed =
      verdict !== null || reply.body === null || (confirms?.({ status, body: reply.body }) ?? true);
    if (confirmed !== true) throw toUnconfirmed(endpoint.host, status, confirmed);
    return reply;
  }
  const word = await readErrorWord(response, [endpoint.path, ...secrets]);
  throw new DeliveryError({ ...verdict, text: `${endpoint.host} answered ${status}${word}` });
}

/** Returns the code of a failed connection. Its message may contain the request or internal addresses. */
function toUnreachable(thrown: unknown, endpoint: Endpoint): DeliveryError {
  const code =
    thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : "UNKNOWN";
  const advice = thrown instanceof Error ? adviseTls(thrown, "the receiver") : null;
  const text = `no answer from ${endpoint.host} (${code.slice(0, 60)})${advice === null ? "" : `: ${advice}`}`;
  return new DeliveryError({ code: "ENDPOINT_UNREACHABLE", disposition: "retry", text });
}

/**
 * Sends once and resolves on 2xx. Throws DeliveryError, or the signal's reason if the caller aborts. A lost answer
 * counts as ENDPOINT_UNREACHABLE, although the receiver may have the message.
 */
export async function post(endpoint: Endpoint, request: PostRequest): Promise<Reply> {
  const deadline = startDeadline(request.timeoutMs, request.signal, never);
  try {
    deadline.signal.throwIfAborted();
    const response = await endpoint.dispatcher.request({
      origin: endpoint.origin,
      path: endpoint.path.reveal(),
      method: request.method ?? "POST",
      headers: { "user-agent": "longwatch", "content-type": "application/json", ...request.headers },
      body: request.body,
      headersTimeout: 0,
      bodyTimeout: 0,
      signal: deadline.signal,
    });
    return await readReply(response, endpoint, request);
  } catch (thrown) {
    // The status decides, even if the time ran out while the rest of its answer was read.
    if (thrown instanceof DeliveryError) throw thrown;
    if (deadline.endedBy() === "caller") throw request.signal.reason;
    if (deadline.endedBy() === "timeout") {
      const text = `no answer from ${endpoint.host} in ${request.timeoutMs / 1_000} s`;
      throw new DeliveryError({ code: "ENDPOINT_TIMEOUT", disposition: "retry", text });
    }
    throw toUnreachable(thrown, endpoint);
  } finally {
    deadline.release();
  }
}

const PROGRESS = /^part (\d{1,3})(?: (.*))?$/s;

/**
 * Sends a message of several parts in order and skips the parts that an earlier attempt has sent, so that a retry does
 * not notify twice. `sendPart` gets the reference that the part before returned and returns the next one.
 */
export async function sendParts(
  count: number,
  { progress, onProgress, providerReference }: SendOptions,
  sendPart: (index: number, reference: string | null) => Promise<string | null>,
): Promise<SendResult> {
  const [, done, reached] = PROGRESS.exec(progress ?? "") ?? [];
  const from = Math.min(Number(done ?? 0), count);
  let reference = from === 0 ? providerReference : (reached ?? null);
  for (let index = from; index < count; index += 1) {
    reference = await sendPart(index, reference);
    if (index < count - 1) onProgress?.(`part ${index + 1}${reference === null ? "" : ` ${reference}`}`);
  }
  const messages = count - from;
  return { providerReference: reference, ...(messages === 1 ? {} : { messages }) };
}

/**
 * Posts the requests of a message in order, and skips those that an earlier attempt has sent.
 * @throws {DeliveryError}, or the signal's reason
 */
export function postParts(
  parts: readonly (Omit<PostRequest, "timeoutMs" | "clock" | "signal"> & { readonly endpoint: Endpoint })[],
  { clock, timeoutMs = POST_TIMEOUT_MS }: { readonly clock: Clock; readonly timeoutMs?: number },
  sending: SendOptions,
): Promise<SendResult> {
  return sendParts(parts.length, sending, async (index) => {
    const part = parts[index];
    if (part !== undefined) await post(part.endpoint, { ...part, timeoutMs, clock, signal: sending.signal });
    return null;
  });
}

/**
 * Opens the heartbeat to the external monitor; null if none is configured. Posts to public addresses only, like a
 * channel. Its errors contain no more of the address than the host.
 * @throws {UsageError} for a bad URL
 */
export function openHeartbeat(
  { heartbeatUrl, channels }: { heartbeatUrl: Secret | null; channels: { allowPrivate: boolean } },
  clock: Clock,
): ((signal: AbortSignal) => Promise<void>) | null {
  if (heartbeatUrl === null) return null;
  const endpoint = openEndpoint("heartbeat", heartbeatUrl, { allowPrivateNetworks: channels.allowPrivate });
  const message = { body: "{}", timeoutMs: POST_TIMEOUT_MS, clock };
  return async (signal) => void (await post(endpoint, { ...message, signal }));
}
