/** Sends one request, receives its answer, and checks a whole one. */
import { pipeline, type Readable } from "node:stream";
import zlib from "node:zlib";
import type { Pool } from "undici";
import type { z } from "zod";
import type { Clock } from "#lib/clock.ts";
import { parseRetryAfter, readBody } from "#lib/http.ts";
import { isObject, parseJson, sliceEntries } from "#lib/json.ts";
import type { Secret } from "#lib/secret.ts";
import { EdgeError } from "../edge-error.ts";
import { type EdgeCall, isRepeatable } from "./call.ts";
import { FailedAttempt, malformed, readFailure, UnknownEncodingError } from "./failure.ts";

/** Maximum number of bytes read of an error body. */
const MAX_ERROR_BYTES = 1_024 * 1_024;

export interface Exchange {
  readonly status: number;
  readonly contentType: string;
  /** The decoded body; must be read to its end or destroyed. */
  readonly body: Readable;
  readonly requestId: string | null;
  readonly retryAfterMs: number | null;
}

function only(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/**
 * Sends one request and waits for the head of its answer. Sends only the headers that are needed: an Accept header is
 * known to break a list of this platform. Redirects are not followed, because the key would be sent along.
 * `idleTimeoutMs` limits silence; 0 leaves all limits to the signal.
 */
export async function exchange(
  pool: Pool,
  connection: { basePath: string; accessKey: Secret; clock: Clock },
  call: EdgeCall,
  idleTimeoutMs: number,
  signal: AbortSignal,
): Promise<Exchange> {
  const response = await pool.request({
    method: call.method,
    path: `${connection.basePath}${call.path}`,
    headers: {
      AccessKey: connection.accessKey.reveal(),
      "accept-encoding": "gzip",
      ...(call.body === undefined ? {} : { "content-type": "application/json" }),
    },
    body: call.body === undefined ? null : JSON.stringify(call.body),
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
    signal,
  });
  const { headers } = response;
  return {
    status: response.statusCode,
    contentType: only(headers["content-type"])?.toLowerCase() ?? "",
    body: decodeBody(response.body, only(headers["content-encoding"])),
    requestId: only(headers["cdn-requestid"]) ?? null,
    retryAfterMs: parseRetryAfter(only(headers["retry-after"]), only(headers["date"]), connection.clock()),
  };
}

/** A whole, successful answer. */
export interface EdgeReply {
  readonly status: number;
  /** The body parsed once; undefined when the call expects nothing and got nothing. */
  readonly json: unknown;
  /** The entries of the call's `list`, byte for byte; the list itself is then empty. */
  readonly entries: readonly Buffer[];
  /** The body byte for byte as the platform wrote it (decompressed). */
  readonly body: Buffer;
  readonly requestId: string | null;
}

/** Maximum number of bytes quoted from an answer. */
const START_BYTES = 1_024;

function describe(text: string): string {
  const start = text.trimStart();
  if (start === "") return "the answer is empty where JSON was expected";
  return start.startsWith("<")
    ? "the answer is an HTML page where JSON was expected"
    : "the answer is not complete JSON";
}

/** Returns the message for a success status that this operation does not have. */
export function describeStatus(status: number, successes: readonly number[]): string {
  return `HTTP ${status} where only ${successes.join(", ")} is a success`;
}

/** Reads an answer to its end. Throws a FailedAttempt for every failure, even one with a success status. */
export async function receiveReply(
  call: EdgeCall,
  answer: Exchange,
  maxBodyBytes: number,
  signal: AbortSignal,
): Promise<EdgeReply> {
  const { status, requestId, retryAfterMs } = answer;
  if (status < 200 || status >= 300) return throwStatus(answer, signal);
  const body = await readBody(answer.body, maxBodyBytes);
  const text = body.toString("utf8", 0, START_BYTES);
  const { json, entries } =
    call.list === undefined ? { json: parseJson(body.toString()), entries: [] } : openList(body, call.list);
  const failure = readFailure({ status, json, text });
  if (failure !== null) throw new FailedAttempt(failure, retryAfterMs, requestId);
  // The document shows no body for some operations.
  const isEmpty = call.mayBeEmpty === true && text.trim() === "";
  if (isEmpty) return { status, json: {}, entries, body, requestId };
  const isUnread = call.expects === "json" ? json === undefined : text.trimStart().startsWith("<");
  if (isUnread) throw new FailedAttempt(malformed(status, describe(text)), retryAfterMs, requestId);
  if (call.successes?.includes(status) === false)
    throw new FailedAttempt(
      malformed(status, describeStatus(status, call.successes)),
      retryAfterMs,
      requestId,
    );
  return { status, json, entries, body, requestId };
}

/**
 * Returns an answer with an empty list `member`, and the list's entries byte for byte. A hostile answer of the maximum
 * size then becomes objects only entry by entry. The JSON is undefined if the answer without its entries is no JSON.
 */
export function openList(body: Buffer, member: string): { json: unknown; entries: readonly Buffer[] } {
  const list = sliceEntries(body, member);
  if (list !== null) {
    const rest = Buffer.concat([body.subarray(0, list.start + 1), body.subarray(list.end)]);
    const json = parseJson(rest.toString());
    // A list behind it whose name is written with escapes is the one that counts, and has entries.
    const emptied = isObject(json) ? json[member] : null;
    if (Array.isArray(emptied) && emptied.length === 0) return { json, entries: list.items };
  }
  const json = parseJson(body.toString());
  const entries: unknown = isObject(json) ? json[member] : null;
  if (!isObject(json) || !Array.isArray(entries)) return { json, entries: [] };
  const written = entries.map((entry: unknown) => Buffer.from(JSON.stringify(entry)));
  return { json: { ...json, [member]: [] }, entries: written };
}

/**
 * Returns the parsed answer and keeps unknown members. Throws EDGE_MALFORMED when the JSON does not fulfil the
 * operation's contract.
 */
export function readAnswer<Schema extends z.ZodType>(
  schema: Schema,
  call: EdgeCall,
  reply: EdgeReply,
): z.output<Schema> {
  const parsed = schema.safeParse(reply.json);
  if (parsed.success) return parsed.data;
  // Names paths and types only, because values come from the platform, and a key list's values are credentials.
  const said = parsed.error.issues.map((issue) => `${issue.path.join(".") || "body"}: ${issue.message}`);
  throw new EdgeError({
    operation: call.operation,
    code: "EDGE_MALFORMED",
    disposition: isRepeatable(call) ? "retry" : "give-up",
    text: `the answer has another shape: ${said.join("; ")}`,
    status: reply.status,
    requestId: reply.requestId,
  });
}

/**
 * Throws the failure of an answer whose status is not 2xx. If its body is cut, damaged or missing, only the status
 * decides.
 */
export async function throwStatus(answer: Exchange, signal: AbortSignal): Promise<never> {
  const body = await readBody(answer.body, MAX_ERROR_BYTES, true).catch(() => Buffer.alloc(0));
  signal.throwIfAborted();
  const text = body.toString("utf8");
  const failure = readFailure({ status: answer.status, json: parseJson(text), text });
  if (failure === null) throw new Error(`status ${answer.status} is not a failure`);
  throw new FailedAttempt(failure, answer.retryAfterMs, answer.requestId);
}

/**
 * With the default pieces of 16 KiB, a page of a megabyte costs the main thread more than inflating it costs the
 * thread pool.
 */
const CHUNK_BYTES = 262_144;
/**
 * 8 MiB, the most that RFC 9659 allows a server. The default of 128 MiB per answer would let a hostile server use up
 * the memory.
 */
const ZSTD_WINDOW_LOG = 23;

function createDecoder(encoding: string) {
  switch (encoding) {
    case "gzip":
    case "x-gzip":
      return zlib.createGunzip({ chunkSize: CHUNK_BYTES });
    case "br":
      return zlib.createBrotliDecompress();
    case "zstd":
      return zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } });
    case "deflate":
      return zlib.createInflate();
    default:
      throw new UnknownEncodingError(`content-encoding ${encoding} cannot be read`);
  }
}

/**
 * Returns the body without its content encodings (gzip, br, zstd, deflate, or several). Destroying it destroys the
 * source.
 */
function decodeBody(body: Readable, contentEncoding: string | undefined): Readable {
  const encodings = (contentEncoding ?? "")
    .split(",")
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== "" && part !== "identity");
  try {
    return encodings.reverse().reduce<Readable>((source, encoding) => {
      const decoder = createDecoder(encoding);
      // The reader of the last stage sees every error. The callback only prevents unhandled errors.
      return pipeline(source, decoder, () => {});
    }, body);
  } catch (error) {
    body.on("error", () => {}).destroy();
    throw error;
  }
}
