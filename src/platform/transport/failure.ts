/** Why an attempt failed: what a failed answer of the platform says, and the error that the client throws. */
import { toError } from "#lib/errors.ts";
import { BodyTooLargeError } from "#lib/http.ts";
import { isObject } from "#lib/json.ts";
import type { EndedBy } from "#lib/waiting.ts";
import {
  ExtendedProblem,
  GenericRequestResponse,
  LegacyError,
  MinimalError,
  ProblemDetails,
} from "../contract/errors.ts";
import { EdgeError, type EdgeErrorCode } from "../edge-error.ts";
import { type EdgeCall, isRepeatable } from "./call.ts";

export interface Failure {
  readonly code: EdgeErrorCode;
  readonly status: number | null;
  readonly message: string;
  readonly errorKey: string | null;
  readonly field: string | null;
}

const NOT_FOUND_KEY = /^not_found|\.not_found$/i;
const PLAN_KEY = /^(?:invalid_plan_type|limit_reached|feature_not_available)/i;
const WINDOW_KEY = /^invalid_datetime_window/i;
const DENIED = /authorization has been denied/i;

/**
 * Returns the kind of failure. The key decides before the status, because the platform sends one failure under
 * several statuses. A 401 with a key is a rejected request. A denied authorization under any status, even 500, is a
 * matter of credentials.
 */
function classify(status: number, reading: ErrorReading): EdgeErrorCode {
  const { errorKey, message } = reading;
  if (status === 429) return "EDGE_RATE_LIMITED";
  if (errorKey !== null) {
    if (NOT_FOUND_KEY.test(errorKey)) return "EDGE_NOT_FOUND";
    if (PLAN_KEY.test(errorKey)) return "EDGE_PLAN";
    if (WINDOW_KEY.test(errorKey)) return "EDGE_WINDOW";
  }
  if (message !== null && DENIED.test(message)) return "EDGE_UNAUTHORIZED";
  if (status === 401) return errorKey === null ? "EDGE_UNAUTHORIZED" : "EDGE_REJECTED";
  if (status === 403) return "EDGE_FORBIDDEN";
  if (status === 404) return "EDGE_NOT_FOUND";
  if (status >= 500 || status === 408) return "EDGE_UNAVAILABLE";
  return "EDGE_REJECTED";
}

const SAYINGS: Record<number, string> = {
  401: "the access key was refused",
  403: "not allowed",
  404: "not found",
  429: "too many requests",
};

function toFailure(httpStatus: number, reading: ErrorReading): Failure {
  const own = reading.statusCode !== null && reading.statusCode >= 400 ? reading.statusCode : httpStatus;
  // A 429 may come from a limiter in front of the platform, so it decides alone: whatever the body says, the request
  // is retried later.
  const status = httpStatus === 429 ? httpStatus : own;
  const message = reading.message ?? SAYINGS[status] ?? `HTTP ${httpStatus} without an explanation`;
  return {
    code: classify(status, reading),
    status,
    message,
    errorKey: reading.errorKey,
    field: reading.field,
  };
}

/**
 * Returns whether a status block has only its defaults (status 0, success false, no texts). The platform sends it
 * with successes, so it reports nothing.
 */
function isDefaultBlock(block: Record<string, unknown>): boolean {
  const members = [block["statusCode"], block["success"], block["message"], block["errorKey"]];
  return members.every((value) => !value);
}

/**
 * Returns the failure in an answer with a success status, or null. Everything but `success: true` without an error's
 * key or status is a failure (platform API spec 7.1), even without a reason: the lists beside it are null, and
 * reading those as "no events" would be a silent gap. The one exception is the block with its defaults.
 */
function findFailedBlock(json: unknown): ErrorReading | null {
  if (!isObject(json)) return null;
  const isBlock = "success" in json || "errorKey" in json || "statusCode" in json;
  for (const place of [json["errorResponse"], json["error"], isBlock ? json : null]) {
    if (!isObject(place) || isDefaultBlock(place)) continue;
    const block = readBlock(place);
    if (block === null) continue;
    const isSuccess = block.success && block.errorKey === null && (block.statusCode ?? 0) < 400;
    if (!isSuccess) return block;
  }
  return null;
}

/** Returns the failure that an answer reports, or null for a success; upstream facts on error envelopes. */
export function readFailure(reply: { status: number; json: unknown; text: string }): Failure | null {
  const { status, json, text } = reply;
  if (status >= 200 && status < 300) {
    const block = findFailedBlock(json);
    return block === null ? null : toFailure(status, block);
  }
  if (status < 400) {
    return {
      code: "EDGE_REJECTED",
      status,
      message: "a redirect, which is not followed",
      errorKey: null,
      field: null,
    };
  }
  return toFailure(status, readErrorBody(json, text));
}

/** The content of an error body in any of the platform's shapes. */
interface ErrorReading {
  readonly message: string | null;
  readonly errorKey: string | null;
  readonly field: string | null;
  /** The body's own status code; null when it has none. */
  readonly statusCode: number | null;
}

const SILENT: ErrorReading = { message: null, errorKey: null, field: null, statusCode: null };

function filled(text: string | null | undefined): string | null {
  return text === null || text === undefined || text.trim() === "" ? null : text;
}

function code(value: number | null | undefined): number | null {
  return value === null || value === undefined || value === 0 ? null : value;
}

/** Returns the status block from one of its three places; null if there is none with content. */
function readBlock(value: unknown): (ErrorReading & { readonly success: boolean }) | null {
  const parsed = GenericRequestResponse.safeParse(value);
  if (!parsed.success) return null;
  const { statusCode, success, message, errorKey } = parsed.data;
  const reading = {
    message: filled(message),
    errorKey: filled(errorKey),
    field: null,
    statusCode: code(statusCode),
  };
  return { ...reading, success };
}

function readLegacy(body: object): ErrorReading | null {
  const legacy = LegacyError.parse(body);
  const reading = {
    ...SILENT,
    message: filled(legacy.Message),
    errorKey: filled(legacy.ErrorKey),
    field: filled(legacy.Field),
  };
  return reading.message === null && reading.errorKey === null ? null : reading;
}

/** `errors` is a list of {message, field} or, from model validation, a map of field to messages. */
function readIssues(errors: unknown): { field: string | null; message: string }[] {
  if (Array.isArray(errors)) {
    const listed = ExtendedProblem.parse({ errors }).errors ?? [];
    return listed.flatMap(({ message, field }) => {
      const text = filled(message);
      return text === null ? [] : [{ field: filled(field), message: text }];
    });
  }
  if (!isObject(errors)) return [];
  return Object.entries(errors).flatMap(([field, messages]) =>
    [messages]
      .flat()
      .filter((message) => typeof message === "string")
      .map((message) => ({ field: filled(field), message })),
  );
}

function readProblem(body: Record<string, unknown>): ErrorReading | null {
  const problem = ProblemDetails.parse(body);
  const issues = readIssues(body["errors"]);
  const said = issues.map(({ field, message }) => (field === null ? message : `${field}: ${message}`));
  const head = filled(problem.detail) ?? filled(problem.title);
  if (head === null && said.length === 0) return null;
  return {
    message: [head, ...said].filter((part) => part !== null).join("; "),
    errorKey: filled(typeof body["errorKey"] === "string" ? body["errorKey"] : null),
    field: issues.find((issue) => issue.field !== null)?.field ?? null,
    statusCode: code(problem.status),
  };
}

function readObject(body: Record<string, unknown>): ErrorReading {
  for (const place of [body["errorResponse"], body["error"]]) {
    const block = readBlock(place);
    if (block !== null && (block.message !== null || block.errorKey !== null)) return block;
  }
  const legacy = readLegacy(body);
  if (legacy !== null) return legacy;
  const problem = readProblem(body);
  if (problem !== null) return problem;
  const top = readBlock(body);
  if (top !== null && (top.message !== null || top.errorKey !== null)) return top;
  const inner = readBlock(body["errorResponse"]) ?? readBlock(body["error"]);
  const minimal = MinimalError.safeParse(body);
  return {
    ...SILENT,
    statusCode: (minimal.success ? code(minimal.data.statusCode) : null) ?? inner?.statusCode ?? null,
  };
}

function readText(text: string): ErrorReading {
  const plain = text.trim();
  if (plain === "") return SILENT;
  if (!plain.startsWith("<")) return { ...SILENT, message: plain };
  const title = /<title[^>]*>([^<]*)<\/title>/i.exec(plain.slice(0, 4_096))?.[1]?.trim();
  return {
    ...SILENT,
    message: title === undefined || title === "" ? "an HTML page" : `an HTML page: ${title}`,
  };
}

/**
 * Reads any error body: the status block (nested or on top), legacy error, problem details, both container problems,
 * bare statusCode, an array of messages, a bare string, plain text, HTML, nothing; platform API spec 2.13.
 * `json` is undefined when the text is not JSON.
 */
function readErrorBody(json: unknown, text: string): ErrorReading {
  if (json === undefined) return readText(text);
  if (typeof json === "string") return readText(json);
  if (Array.isArray(json)) {
    const readings = json.map((item) => readErrorBody(item ?? "", ""));
    const said = readings.map((reading) => reading.message).filter((message) => message !== null);
    const first = readings.find((reading) => reading.errorKey !== null || reading.field !== null);
    return { ...SILENT, ...first, message: said.length === 0 ? null : said.join("; "), statusCode: null };
  }
  return isObject(json) ? readObject(json) : SILENT;
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

/** Thrown for a body whose content encoding cannot be read. */
export class UnknownEncodingError extends Error {
  override readonly name = "UnknownEncodingError";
}

/** Returns whether a retry may help and is harmless. A 429 did nothing, so it is safe for every method. */
export function mayRetry(code: EdgeErrorCode, isRepeatable: boolean): boolean {
  if (code === "EDGE_RATE_LIMITED") return true;
  return (
    isRepeatable && (code === "EDGE_UNAVAILABLE" || code === "EDGE_NETWORK" || code === "EDGE_MALFORMED")
  );
}

/** Keeps only name and message: errors of the HTTP parser hold raw response bytes, which may contain the key. */
function toCause(error: unknown, hideKey: (text: string) => string): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  const cause = new Error(hideKey(error.message));
  cause.name = error.name;
  return cause;
}

/** Returns the error of a failed attempt that the client throws. */
export function toEdgeError(
  call: EdgeCall,
  failed: FailedAttempt,
  waitMs: number | null,
  hideKey: (text: string) => string,
): EdgeError {
  const { failure, requestId } = failed;
  const { code } = failure;
  const mayHelp = mayRetry(code, isRepeatable(call)) || (code === "EDGE_TIMEOUT" && isRepeatable(call));
  const hide = (text: string | null) => (text === null ? null : hideKey(text));
  return new EdgeError({
    operation: call.operation,
    code,
    disposition: waitMs !== null ? "wait" : mayHelp ? "retry" : "give-up",
    text: hideKey(failure.message),
    status: failure.status,
    errorKey: hide(failure.errorKey),
    field: hide(failure.field),
    requestId: hide(requestId),
    waitMs: waitMs ?? undefined,
    cause: toCause(failed.cause, hideKey),
  });
}
