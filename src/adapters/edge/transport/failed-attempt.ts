import type { EndedBy } from "#lib/deadline.ts";
import { toError } from "#lib/errors.ts";
import { BodyTooLargeError } from "#lib/read-body.ts";
import type { EdgeErrorCode } from "../edge-error.ts";
import { UnknownEncodingError } from "./decode-body.ts";
import type { Failure } from "./read-failure.ts";

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
