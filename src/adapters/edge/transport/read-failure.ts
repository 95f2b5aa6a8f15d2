import { isObject } from "#lib/is-object.ts";
import type { EdgeErrorCode } from "../edge-error.ts";
import { type ErrorReading, readBlock, readErrorBody } from "./read-error-body.ts";

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
