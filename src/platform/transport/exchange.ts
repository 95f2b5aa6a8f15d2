/** Sends one request, decodes the body of its answer, and says how an attempt failed. */
import { pipeline, type Readable } from "node:stream";
import zlib from "node:zlib";
import type { Pool } from "undici";
import type { Clock } from "#lib/clock.ts";
import { toError } from "#lib/errors.ts";
import { BodyTooLargeError, parseRetryAfter, readBody } from "#lib/http.ts";
import { parseJson } from "#lib/json.ts";
import type { Secret } from "#lib/secret.ts";
import type { EndedBy } from "#lib/waiting.ts";
import type { EdgeErrorCode } from "../edge-error.ts";
import type { EdgeCall } from "./call.ts";
import { type Failure, readFailure } from "./failure.ts";

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
 * The reason why one attempt failed, and what its answer said about a retry. Thrown by an attempt, read by
 * runAttempts.
 */
export class FailedAttempt extends Error {
  override readonly name = "FailedAttempt";
  readonly failure: Failure;
  readonly retryAfterMs: number | null;
  readonly requestId: string | null;

  constructor(failure: Failure, retryAfterMs: number | null, requestId: string | null, cause?: Error) {
    super(failure.message, { cause });
    this.failure = failure;
    this.retryAfterMs = retryAfterMs;
    this.requestId = requestId;
  }
}

/** Returns the failure for an answer that cannot be read. */
export function malformed(status: number | null, message: string): Failure {
  return { code: "EDGE_MALFORMED", status, message, errorKey: null, field: null };
}

function codeOf(error: Error): string {
  const code: unknown = "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : error.name;
}

function without(code: EdgeErrorCode, message: string): Failure {
  return { code, status: null, message, errorKey: null, field: null };
}

function readThrown(error: Error, endedBy: EndedBy | null): Failure {
  if (endedBy === "timeout") return without("EDGE_TIMEOUT", "the deadline of the call passed");
  if (endedBy === "closed") return without("EDGE_NETWORK", "the client was closed");
  if (error instanceof BodyTooLargeError) return without("EDGE_BODY_TOO_LARGE", error.message);
  if (error instanceof UnknownEncodingError) return malformed(null, error.message);
  const code = codeOf(error);
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT") {
    return without("EDGE_TIMEOUT", "the platform went silent");
  }
  // zlib reports damage as Z_*, brotli as ERR_* and zstd as ZSTD_*. All other errors come from the socket or undici's
  // parser.
  if (/^(?:Z_|ERR_|ZSTD_)/.test(code) && !code.startsWith("ERR_STREAM") && !code.startsWith("ERR_SSL")) {
    return malformed(null, `the compressed body is damaged (${code})`);
  }
  return without("EDGE_NETWORK", `the connection failed (${code}): ${error.message}`);
}

/** Converts anything that an attempt threw to a failure. `endedBy` says whether the deadline caused it. */
export function toFailedAttempt(thrown: unknown, endedBy: EndedBy | null): FailedAttempt {
  if (thrown instanceof FailedAttempt && endedBy === null) return thrown;
  const error = toError(thrown);
  const requestId = thrown instanceof FailedAttempt ? thrown.requestId : null;
  return new FailedAttempt(readThrown(error, endedBy), null, requestId, error);
}

class UnknownEncodingError extends Error {
  override readonly name = "UnknownEncodingError";
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
