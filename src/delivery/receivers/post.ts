/** Posts a request to a receiver. */
import { createHash } from "node:crypto";
import type { Dispatcher } from "undici";
import type { z } from "zod";
import { needsNotification } from "#delivery/rules/message/write-document.ts";
import type { Clock } from "#lib/clock.ts";
import { adviseTls, parseRetryAfter, readBody } from "#lib/http.ts";
import type { Secret } from "#lib/secret.ts";
import { startDeadline } from "#lib/waiting.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { Notifier, SenderContext, SendOptions, SendResult } from "./channel-definition.ts";
import { classifyStatus, DeliveryError, readReply as readAnswer } from "./delivery-error.ts";
import { type Endpoint, extendEndpoint, openEndpoint } from "./endpoint.ts";

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
  /** The vendor's phrases for a refusal that an error may repeat. No other text of an answer is repeated, except one word. */
  readonly phrases?: readonly string[];
  /** Returns the pause in milliseconds that a refusal asks for in its body; null if it asks for none. */
  readonly readPause?: (body: string) => number | null;
  /** A longer answer is cut. Default 16 KiB. */
  readonly maxReplyBytes?: number;
}

export interface Reply {
  readonly status: number;
  /** The answer's text, cut at `maxReplyBytes`; null if it was lost. */
  readonly body: string | null;
}

/**
 * Returns a provider's error word, such as `invalid_blocks`, or one of its known phrases. Nothing else of a reply is
 * repeated, because the reply may contain the sent message.
 */
function findErrorWord(body: string, secrets: readonly Secret[], phrases: readonly string[]): string {
  const word = body.trim();
  const isWord = /^[a-z]+(?:_[a-z]+)*$/.test(word) && word.length <= 40;
  const said = isWord ? word : phrases.find((phrase) => body.includes(phrase));
  return said === undefined || secrets.some((secret) => secret.reveal().includes(said)) ? "" : `, ${said}`;
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
  request: PostRequest,
): Promise<Reply> {
  const { clock, secrets = [], accepts = [], maxReplyBytes = MAX_REPLY_BYTES, confirms } = request;
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
  const refusal = await readBody(response.body, MAX_REPLY_BYTES, true).catch(() => Buffer.alloc(0));
  const body = refusal.toString("latin1");
  const word = findErrorWord(body, [endpoint.path, ...secrets], request.phrases ?? []);
  const pauseMs = request.readPause?.(body) ?? null;
  const waiting = pauseMs === null || verdict.disposition !== "wait" ? {} : { waitMs: pauseMs };
  throw new DeliveryError({ ...waiting, ...verdict, text: `${endpoint.host} answered ${status}${word}` });
}

/** Returns the code of a failed connection. Its message may contain the request or internal addresses. */
export function toUnreachable(thrown: unknown, host: string, cause = thrown): DeliveryError {
  const code =
    thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : "UNKNOWN";
  const advice = cause instanceof Error ? adviseTls(cause, "the receiver") : null;
  const text = `no answer from ${host} (${code.slice(0, 60)})${advice === null ? "" : `: ${advice}`}`;
  return new DeliveryError({ code: "ENDPOINT_UNREACHABLE", disposition: "retry", text });
}

/**
 * Runs one exchange with a receiver. `toFailure` makes a DeliveryError of anything else that it throws.
 * @throws {DeliveryError}, or the signal's reason if the caller aborts
 */
export async function withinTime<Answer>(
  { host, timeoutMs, signal }: { host: string } & Pick<PostRequest, "timeoutMs" | "signal">,
  run: (signal: AbortSignal) => Promise<Answer>,
  toFailure: (thrown: unknown, host: string) => DeliveryError = toUnreachable,
): Promise<Answer> {
  const deadline = startDeadline(timeoutMs, signal, never);
  try {
    deadline.signal.throwIfAborted();
    return await run(deadline.signal);
  } catch (thrown) {
    // The status decides, even if the time ran out while the rest of its answer was read.
    if (thrown instanceof DeliveryError) throw thrown;
    if (deadline.endedBy() === "caller") throw signal.reason;
    if (deadline.endedBy() !== "timeout") throw toFailure(thrown, host);
    const text = `no answer from ${host} in ${timeoutMs / 1_000} s`;
    throw new DeliveryError({ code: "ENDPOINT_TIMEOUT", disposition: "retry", text });
  } finally {
    deadline.release();
  }
}

/**
 * Sends once and resolves on 2xx. Throws DeliveryError, or the signal's reason if the caller aborts. A lost answer
 * counts as ENDPOINT_UNREACHABLE, although the receiver may have the message.
 */
export function post(endpoint: Endpoint, request: PostRequest): Promise<Reply> {
  return withinTime({ ...request, host: endpoint.host }, async (signal) => {
    const response = await endpoint.dispatcher.request({
      origin: endpoint.origin,
      path: endpoint.path.reveal(),
      method: request.method ?? "POST",
      headers: { "user-agent": "longwatch", "content-type": "application/json", ...request.headers },
      body: request.body,
      headersTimeout: 0,
      bodyTimeout: 0,
      signal,
    });
    return readReply(response, endpoint, request);
  });
}

interface FormPart {
  readonly name: string;
  /** Content type. */
  readonly type: string;
  readonly text: string;
  readonly filename?: string;
}

/** Returns the headers and the body of a request with form data. Equal parts make equal bytes. */
function toFormData(parts: readonly FormPart[]) {
  const texts = createHash("sha256");
  for (const { text } of parts) texts.update(text);
  const boundary = `longwatch-${texts.digest("hex")}`;
  const written = parts.map(({ name, type, text, filename }) => {
    const named = filename === undefined ? "" : `; filename="${filename}"`;
    const head = `content-disposition: form-data; name="${name}"${named}\r\ncontent-type: ${type}`;
    return `--${boundary}\r\n${head}\r\n\r\n${text}\r\n`;
  });
  const headers = { "content-type": `multipart/form-data; boundary=${boundary}` };
  return { headers, body: `${written.join("")}--${boundary}--\r\n` };
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
 * Returns the `createSender` of a channel with one address, to which every body of a message is posted in order as JSON.
 * `confirms` is that of a request. The sender throws a UsageError for a bad URL.
 */
export function createPoster(
  toBodies: (message: AlertMessage) => readonly object[],
  confirms: NonNullable<PostRequest["confirms"]>,
) {
  return (options: SenderContext & { readonly name: string; readonly url: Secret }): Notifier["send"] => {
    const endpoint = openEndpoint(options.name, options.url, options.network ?? {});
    return async (message, sending) => {
      const parts = toBodies(message).map((body) => ({ endpoint, body: JSON.stringify(body), confirms }));
      return postParts(parts, options, sending);
    };
  };
}

interface JsonApi<Answer> {
  readonly url: Secret;
  /** Credentials by their fields in the configuration. Each must be one word of ASCII. */
  readonly credentials: Readonly<Record<string, Secret | undefined>>;
  /** Further texts that no error may repeat. */
  readonly secrets?: readonly Secret[];
  readonly mistakes?: readonly string[];
  readonly headers?: PostRequest["headers"];
  /** The answer by which the vendor says that it has the message. */
  readonly answer: z.ZodType<Answer>;
  readonly phrases?: readonly string[];
  readonly readPause?: NonNullable<PostRequest["readPause"]>;
  readonly maxReplyBytes?: number;
}

interface JsonCall extends Pick<PostRequest, "method" | "accepts"> {
  /** Path below the API's address. */
  readonly path?: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as form data instead of JSON, for a message with a file. */
  readonly form?: readonly FormPart[];
}

/**
 * Opens an API that takes JSON. Its calls return the vendor's answer, which is null if it was lost or is an accepted failure;
 * they throw DeliveryError, or the signal's reason.
 * @throws {UsageError} for a bad URL or credential
 */
export function openApi<Answer>(options: SenderContext & { readonly name: string }, api: JsonApi<Answer>) {
  const { name, clock, network = {}, timeoutMs = POST_TIMEOUT_MS } = options;
  const { url, credentials, headers = {}, answer, ...known } = api;
  const words = Object.entries(credentials).filter(
    (entry): entry is [string, Secret] => entry[1] !== undefined,
  );
  const bad = words.filter(([, word]) => !/^[\x21-\x7e]+$/.test(word.reveal()));
  const mistakes = [...(api.mistakes ?? []), ...bad.map(([field]) => `${field}: must be one word`)];
  const endpoint = openEndpoint(name, url, network, mistakes);
  const secrets = [...(api.secrets ?? []), ...words.map(([, word]) => word)];
  const confirms = ({ body }: { readonly body: string }) => readAnswer(body, answer) !== null;
  return async (body: object, { signal }: Pick<SendOptions, "signal">, call: JsonCall = {}) => {
    const { path = "", query, form, ...how } = call;
    const sent = form === undefined ? { body: JSON.stringify(body) } : toFormData(form);
    const request = { headers, ...sent, ...known, ...how, secrets, confirms, timeoutMs, clock, signal };
    const at = path === "" && query === undefined ? endpoint : extendEndpoint(endpoint, path, query);
    const reply = await post(at, request);
    return { ...reply, answer: readAnswer(reply.body, answer) };
  };
}

interface InPlace<Place> {
  /** Returns false if the message was deleted or can no longer be edited. */
  readonly edit: (posted: Place) => Promise<boolean>;
  readonly note: (posted: Place) => Promise<unknown>;
  /** Returns where the message was posted; null if the receiver does not say. */
  readonly post: () => Promise<Place | null>;
}

/**
 * Edits the message that was posted for an earlier transition, and adds a note if the transition has to notify, because an
 * edit notifies nobody. Posts the message if there is none to edit. Returns where the message is.
 */
export async function sendInPlace<Place>(
  message: AlertMessage,
  posted: Place | null,
  { edit, note, post: postAnew }: InPlace<Place>,
): Promise<Place | null> {
  if (posted === null || !(await edit(posted))) return postAnew();
  if (needsNotification(message)) await note(posted);
  return posted;
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
