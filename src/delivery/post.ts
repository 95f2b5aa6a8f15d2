import type { Dispatcher } from "undici";
import type { Clock } from "../lib/clock.ts";
import { startDeadline } from "../lib/deadline.ts";
import { readBody } from "../lib/read-body.ts";
import { parseRetryAfter } from "../lib/retry-after.ts";
import type { Secret } from "../lib/secret.ts";
import { classifyStatus } from "./classify-status.ts";
import { DeliveryError } from "./delivery-error.ts";
import type { Endpoint } from "./endpoint.ts";

/** Of an answer only a provider's error word or reference is of use. */
const MAX_REPLY_BYTES = 16 * 1_024;
/** Between the 15 and 30 s that Standard Webhooks asks for. */
export const POST_TIMEOUT_MS = 20_000;

const never = new AbortController().signal;

export interface PostRequest {
  /** Default POST. */
  readonly method?: "POST" | "PATCH" | "PUT";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Of the whole exchange: resolving, connecting, sending, reading the answer. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** What the request holds besides the path that no error may repeat. */
  readonly secrets?: readonly Secret[];
  /** Statuses that are an answer and no failure, besides 2xx. */
  readonly accepts?: readonly number[];
}

export interface Reply {
  readonly status: number;
  /** Cut at 16 KiB; null where it was lost on its way. */
  readonly body: string | null;
}

/** A provider's word for what is wrong, such as `invalid_blocks`; nothing else of a reply is repeated, it may echo us. */
async function readErrorWord(response: Dispatcher.ResponseData, secrets: readonly Secret[]): Promise<string> {
  const body = await readBody(response.body, MAX_REPLY_BYTES, true).catch(() => Buffer.alloc(0));
  const word = body.toString("latin1").trim();
  const isWord = /^[a-z]+(?:_[a-z]+)*$/.test(word) && word.length <= 40;
  return isWord && !secrets.some((secret) => secret.reveal().includes(word)) ? `, ${word}` : "";
}

function only(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

async function readReply(
  response: Dispatcher.ResponseData,
  endpoint: Endpoint,
  { clock, secrets = [], accepts = [] }: PostRequest,
): Promise<Reply> {
  const { statusCode: status, headers } = response;
  const retryAfterMs = parseRetryAfter(only(headers["retry-after"]), only(headers["date"]), clock());
  const verdict = classifyStatus(status, retryAfterMs);
  if (verdict === null || accepts.includes(status)) {
    // Taken over: whatever becomes of the rest of the answer, nothing has to be sent again.
    const body = await readBody(response.body, MAX_REPLY_BYTES, true).catch(() => null);
    return { status, body: body === null ? null : body.toString() };
  }
  const word = await readErrorWord(response, [endpoint.path, ...secrets]);
  throw new DeliveryError({ ...verdict, text: `${endpoint.host} answered ${status}${word}` });
}

/** The code of a failed connection. Its message is left out: the parser's may quote the request, the resolver's us. */
function toUnreachable(thrown: unknown, endpoint: Endpoint): DeliveryError {
  const code =
    thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : "UNKNOWN";
  const text = `no answer from ${endpoint.host} (${code.slice(0, 60)})`;
  return new DeliveryError({ code: "ENDPOINT_UNREACHABLE", disposition: "retry", text });
}

/**
 * Sends once. Resolves on 2xx; throws DeliveryError, or the signal's reason when the caller ends it. An answer lost on
 * its way is an ENDPOINT_UNREACHABLE although the receiver may have the message.
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
    // A verdict stands, also when the time ran out while the rest of its answer was read.
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
