/** What a sink is, and how it posts a batch of events and splits a batch that the receiver refuses. */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { z } from "zod";
import type { Secret } from "#lib/secret.ts";
import { cutText, toLine } from "#lib/text.ts";
import type { Dimension } from "#model/kinds.ts";
import type { SenderOptions } from "../channel-definition.ts";
import { DeliveryError } from "../delivery-error.ts";
import type { Endpoint } from "../endpoint.ts";
import { type PostRequest, post, type Reply } from "../post.ts";

/** An event for a receiver. */
export interface ForwardedEvent {
  readonly zoneId: number;
  readonly logId: string;
  /** Epoch ms. */
  readonly occurredAt: number;
  /** JSON text of one object: the event in the destination's format. */
  readonly body: string;
  /** Values for receivers that keep some beside the event. Only `action` and `ruleId` are the platform's own words. */
  readonly fields: Readonly<Record<Dimension, string>>;
  /** True if the receiver has acknowledged the event with other values. A receiver that stores by id replaces it. */
  readonly isRevised: boolean;
}

interface SendBatchOptions {
  /** Equal for every attempt with the same events, so that a receiver can drop a batch that it has. */
  readonly batchId: string;
  readonly signal: AbortSignal;
}

/** An answer that names single events by their positions in the batch. All other events are acknowledged. */
export interface BatchAnswer {
  /** Events that the receiver will never accept as they are, each with its reason. */
  readonly refused: readonly { readonly index: number; readonly reason: string }[];
  /** Events to send again later. */
  readonly postponed: readonly number[];
  /** How long the receiver wants to be left alone. Null: it did not say. */
  readonly waitMs: number | null;
}

/** Events that a receiver has of one hour of a zone. */
interface CountedHour {
  readonly zoneId: number;
  /** Epoch ms. */
  readonly startsAt: number;
}

/** A receiver of events. */
export interface Sink {
  /**
   * Sends events and resolves when the receiver has acknowledged what the answer does not name.
   * @throws {DeliveryError} if the receiver has acknowledged nothing, or if that is not known
   */
  send(events: readonly ForwardedEvent[], options: SendBatchOptions): Promise<BatchAnswer>;
  /**
   * Returns how many events of an hour the receiver has. Null: it cannot be asked.
   * @throws {DeliveryError}
   */
  readonly count: ((hour: CountedHour, signal: AbortSignal) => Promise<number>) | null;
}

/** Returns an id by which a receiver can recognize an event that it has, in all zones. */
export function toEventId({ zoneId, logId }: Pick<ForwardedEvent, "zoneId" | "logId">): string {
  return `${zoneId}-${logId}`;
}

/** Returns nanoseconds as text: they are beyond the whole numbers of JSON. */
export function toNanoseconds(atMs: number): string {
  return `${Math.round(atMs)}000000`;
}

/** Returns JSON without line ends, which can only be between its tokens, because strings escape theirs. */
export function toSingleLine(json: string): string {
  return json.replaceAll(/[\r\n]+/g, " ");
}

/** One kind of sink. Its fields are those of a channel's definition. */
interface SinkDefinition<Kind extends string = string, Settings extends z.ZodRawShape = z.ZodRawShape> {
  readonly kind: Kind;
  readonly settings: Settings;
  readonly example: z.input<z.ZodObject<Settings>>;
  /** When an event counts as acknowledged: the end of a sentence that begins with "acknowledged when". */
  readonly acknowledgedWhen: string;
  /**
   * Opens the sink, which neither connects nor writes yet.
   * @throws {UsageError} listing every mistake of its addresses and secrets
   */
  open(options: SenderOptions<Settings>): Sink;
}

/** Any kind of sink. The caller has parsed the settings before opening the sink. */
export interface AnySink extends Omit<SinkDefinition, "open"> {
  open(options: { readonly name: string }): Sink;
}

export function defineSink<Kind extends string, Settings extends z.ZodRawShape>(
  definition: SinkDefinition<Kind, Settings>,
): SinkDefinition<Kind, Settings> {
  return definition;
}

const compress = promisify(gzip);
/** Statuses by which a receiver may refuse a request because of its events. */
const REFUSING = [400, 413, 422];

interface BatchRequest extends Omit<PostRequest, "body" | "accepts" | "method"> {
  readonly maxBytes: number;
  /** The most bytes of one event. Default: `maxBytes`. */
  readonly maxEventBytes?: number;
  /** Default: one after the other. The positions are those of the texts in the batch. */
  readonly toBody?: (texts: readonly string[], positions: readonly number[]) => string;
  /** Headers that depend on a request's body. Without them the body is compressed. */
  readonly sign?: (body: string, part: string | null) => Readonly<Record<string, string>>;
  /**
   * Returns the header `authorization`. `refused` is the one that the receiver has just answered with 401, null for the first
   * attempt. Without this, 401 is a failure.
   */
  readonly authorize?: (refused: Secret | null, signal: AbortSignal) => Promise<Secret>;
  /** Reads an answer of 2xx, 400 or 422 to a request with these events; null if it does not say what was stored. */
  readonly read: (
    reply: Reply,
    positions: readonly number[],
  ) => PartAnswer | null | Promise<PartAnswer | null>;
}

/**
 * Posts the texts of a batch's events, in several requests where the receiver needs them. `part` names the events of a
 * request; null: all.
 * @throws {DeliveryError} as `splitBatch`
 */
export function postBatch(
  endpoint: Endpoint,
  texts: readonly string[],
  {
    maxBytes,
    maxEventBytes,
    toBody = (some) => some.join(""),
    sign,
    authorize,
    read,
    ...request
  }: BatchRequest,
): Promise<BatchAnswer> {
  async function send(positions: readonly number[], part: string): Promise<PartAnswer> {
    const body = toBody(
      positions.map((position) => texts[position] ?? ""),
      positions,
    );
    const more = sign?.(body, positions.length === texts.length ? null : part) ?? {
      "content-encoding": "gzip",
    };
    const sent = sign === undefined ? await compress(body) : body;
    const secrets = [...(request.secrets ?? [])];
    const attempt = async (refused: Secret | null) => {
      const credential = await authorize?.(refused, request.signal);
      if (credential !== undefined) secrets.push(credential);
      const own = credential === undefined ? {} : { authorization: credential.reveal() };
      const accepts = authorize !== undefined && refused === null ? [...REFUSING, 401] : REFUSING;
      const headers = { ...request.headers, ...more, ...own };
      const reply = await post(endpoint, { ...request, secrets, headers, body: sent, accepts });
      return { reply, credential };
    };
    let { reply, credential } = await attempt(null);
    if (reply.status === 401 && credential !== undefined) ({ reply } = await attempt(credential));
    if (reply.status === 413) return { is: "too-large" };
    const answer = await read(reply, positions);
    if (answer !== null) return answer;
    if (reply.status >= 300) return { is: "refused", reason: describeRefusal(reply, secrets) };
    throw unreadableAnswer(endpoint.host);
  }
  const sizes = texts.map((text) => Buffer.byteLength(text) + 1);
  return splitBatch({ sizes, maxBytes, maxEventBytes, send });
}

/** Returns the error for a 2xx answer that does not say what was stored: it was lost, or another program answered. */
export function unreadableAnswer(host: string): DeliveryError {
  const text = `${host} answered without saying what it stored`;
  return new DeliveryError({ code: "ENDPOINT_UNAVAILABLE", disposition: "retry", text });
}

/** Quotes the answer without the request's secrets. The last word of `Bearer x` is the secret itself. */
function describeRefusal({ status, body }: Reply, secrets: readonly Secret[] = []): string {
  const words = secrets.flatMap((secret) => secret.reveal().split(" ").slice(-1));
  const hide = (text: string, word: string) => (word.length < 4 ? text : text.replaceAll(word, "[secret]"));
  return `answered ${status}: ${words.reduce(hide, body ?? "")}`;
}

/**
 * A receiver's answer to one request. `index` and positions count within the request. stored: all but the named events
 * are acknowledged. refused: the receiver took nothing, or took an unknown part, because of at least one event;
 * `indexes` are these events if the receiver names some. too-large: the request has too many bytes.
 */
export type PartAnswer =
  | ({ readonly is: "stored" } & Partial<BatchAnswer>)
  | { readonly is: "refused"; readonly reason: string; readonly indexes?: readonly number[] }
  | { readonly is: "too-large" };

interface SplitOptions {
  /** Bytes of each event as it is sent, uncompressed. */
  readonly sizes: readonly number[];
  readonly maxBytes: number;
  /** The most bytes of one event. Default: `maxBytes`. */
  readonly maxEventBytes?: number | undefined;
  /** Sends the events at these positions. `part` is equal for every attempt with the same events of one batch. */
  readonly send: (positions: readonly number[], part: string) => Promise<PartAnswer>;
}

/** Enough to find about five refused events among 500. */
const MOST_REQUESTS = 100;
const REASON_CHARS = 300;

/**
 * Sends a batch in as few requests as the receiver's limits allow. A request that is refused because of an unknown event
 * is halved until the event is found, so that the other events arrive. If a request fails after another one was
 * acknowledged, the rest is postponed.
 * @throws {DeliveryError} if nothing was acknowledged, also if every one of many requests was refused
 */
export async function splitBatch({
  sizes,
  maxBytes,
  maxEventBytes,
  send,
}: SplitOptions): Promise<BatchAnswer> {
  const { parts, refused } = cutBySize(sizes, maxBytes, maxEventBytes);
  const postponed: number[] = [];
  let waitMs: number | null = null;
  let isAcknowledged = false;
  const refuse = (index: number, reason: string) =>
    refused.push({ index, reason: cutText(toLine(reason, REASON_CHARS), REASON_CHARS) });
  for (let requests = 0; parts.length > 0; requests += 1) {
    const part = parts[0] ?? [];
    let answer: PartAnswer;
    try {
      if (requests >= MOST_REQUESTS) throw tooManyRefusals(refused.at(-1)?.reason);
      answer = await send(part, `${part[0]}-${part.at(-1)}`);
    } catch (thrown) {
      if (!isAcknowledged || !(thrown instanceof DeliveryError)) throw thrown;
      return { refused, postponed: [...postponed, ...parts.flat()], waitMs: thrown.waitMs ?? waitMs };
    }
    parts.shift();
    if (answer.is === "stored") {
      const { refused: named = [], postponed: later = [] } = answer;
      isAcknowledged ||= named.length + later.length < part.length;
      for (const { index, reason } of named) refuse(part[index] ?? 0, reason);
      postponed.push(...later.map((index) => part[index] ?? 0));
      waitMs = answer.waitMs ?? waitMs;
    } else if (part.length === 1)
      refuse(part[0] ?? 0, answer.is === "refused" ? answer.reason : tooLarge(sizes[part[0] ?? 0]));
    else if (answer.is === "refused" && answer.indexes?.some((index) => index in part) === true) {
      const { indexes, reason } = answer;
      for (const index of indexes) if (index in part) refuse(part[index] ?? 0, reason);
      const rest = part.filter((_, index) => !indexes.includes(index));
      if (rest.length > 0) parts.unshift(rest);
    } else {
      const middle = part.length >> 1;
      parts.unshift(part.slice(0, middle), part.slice(middle));
    }
  }
  return { refused, postponed, waitMs };
}

function cutBySize(sizes: readonly number[], maxBytes: number, maxEventBytes = maxBytes) {
  const parts: (readonly number[])[] = [];
  const refused: { index: number; reason: string }[] = [];
  let open: number[] = [];
  let bytes = 0;
  for (const [index, size] of sizes.entries()) {
    if (size > maxEventBytes) {
      refused.push({ index, reason: `${tooLarge(size)}, at most ${maxEventBytes} are sent` });
      continue;
    }
    if (bytes + size > maxBytes) {
      parts.push(open);
      open = [];
      bytes = 0;
    }
    open.push(index);
    bytes += size;
  }
  if (open.length > 0) parts.push(open);
  return { parts, refused };
}

function tooLarge(bytes = 0): string {
  return `the event is too large: ${bytes} bytes`;
}

function tooManyRefusals(reason = "without a reason"): DeliveryError {
  const text = `the receiver refused most of ${MOST_REQUESTS} requests with one batch (${reason})`;
  return new DeliveryError({ code: "ENDPOINT_REJECTED", disposition: "give-up", text });
}
