import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Secret } from "#lib/secret.ts";
import { DeliveryError } from "../delivery-error.ts";
import type { Endpoint } from "../endpoint.ts";
import { type PostRequest, post, type Reply } from "../post.ts";
import type { BatchAnswer } from "./sink.ts";
import { type PartAnswer, splitBatch } from "./split-batch.ts";

const compress = promisify(gzip);
/** Statuses by which a receiver may refuse a request because of its events. */
const REFUSING = [400, 413, 422];

export interface BatchRequest extends Omit<PostRequest, "body" | "accepts" | "method"> {
  readonly maxBytes: number;
  /** Default: one after the other. */
  readonly toBody?: (texts: readonly string[]) => string;
  /** Headers that depend on a request's body. Without them the body is compressed. */
  readonly sign?: (body: string, part: string | null) => Readonly<Record<string, string>>;
  /** Reads an answer of 2xx, 400 or 422 to a request with `count` events; null if it does not say what was stored. */
  readonly read: (reply: Reply, count: number) => PartAnswer | null | Promise<PartAnswer | null>;
}

/**
 * Posts the texts of a batch's events, in several requests where the receiver needs them. `part` names the events of a
 * request; null: all.
 * @throws {DeliveryError} as `splitBatch`
 */
export function postBatch(
  endpoint: Endpoint,
  texts: readonly string[],
  { maxBytes, toBody = (some) => some.join(""), sign, read, ...request }: BatchRequest,
): Promise<BatchAnswer> {
  async function send(positions: readonly number[], part: string): Promise<PartAnswer> {
    const body = toBody(positions.map((position) => texts[position] ?? ""));
    const more = sign?.(body, positions.length === texts.length ? null : part) ?? {
      "content-encoding": "gzip",
    };
    const reply = await post(endpoint, {
      ...request,
      headers: { ...request.headers, ...more },
      body: sign === undefined ? await compress(body) : body,
      accepts: REFUSING,
    });
    if (reply.status === 413) return { is: "too-large" };
    const answer = await read(reply, positions.length);
    if (answer !== null) return answer;
    if (reply.status >= 300) return { is: "refused", reason: describeRefusal(reply, request.secrets) };
    throw unreadableAnswer(endpoint.host);
  }
  return splitBatch({ sizes: texts.map((text) => Buffer.byteLength(text) + 1), maxBytes, send });
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
