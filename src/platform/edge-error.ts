import { type Disposition, ServiceError } from "#lib/errors.ts";
import { escapeText, shortenText } from "#lib/text.ts";
import type { EdgeOperation } from "./transport/call.ts";

/**
 * The kind of failure, as a bounded set. UNAUTHORIZED: the access key was refused. FORBIDDEN: the account has no
 * right to this. REJECTED: the platform refused this request. WINDOW: the day or window lies outside the platform's
 * retention. PLAN: the plan does not include it. UNAVAILABLE: 5xx. MALFORMED: an answer that cannot be read.
 * CONTRADICTORY: an answer that contradicts itself or its request. INVALID_REQUEST: refused here, nothing was sent.
 */
export type EdgeErrorCode =
  | "EDGE_UNAUTHORIZED"
  | "EDGE_FORBIDDEN"
  | "EDGE_REJECTED"
  | "EDGE_NOT_FOUND"
  | "EDGE_PLAN"
  | "EDGE_WINDOW"
  | "EDGE_RATE_LIMITED"
  | "EDGE_UNAVAILABLE"
  | "EDGE_TIMEOUT"
  | "EDGE_NETWORK"
  | "EDGE_BODY_TOO_LARGE"
  | "EDGE_MALFORMED"
  | "EDGE_CONTRADICTORY"
  | "EDGE_INVALID_REQUEST";

export interface EdgeErrorFacts {
  readonly operation: EdgeOperation;
  readonly code: EdgeErrorCode;
  readonly disposition: Disposition;
  /** The platform's message if there is one. Any text is allowed: it is escaped and shortened here. */
  readonly text: string;
  readonly status?: number | null;
  readonly errorKey?: string | null;
  readonly field?: string | null;
  readonly requestId?: string | null;
  readonly waitMs?: number | undefined;
  readonly mistakes?: readonly string[];
  readonly cause?: Error | undefined;
}

const MAX_TEXT_CHARS = 400;
const MAX_NAME_CHARS = 120;

function name(value: string | null | undefined): string | null {
  return value === null || value === undefined || value === "" ? null : shortenText(value, MAX_NAME_CHARS);
}

/**
 * A failed call of the platform. Message, errorKey, field and requestId are safe to print: control characters are
 * spelled out and the access key is never in them.
 */
export class EdgeError extends ServiceError {
  override readonly name = "EdgeError";
  readonly code: EdgeErrorCode;
  readonly disposition: Disposition;
  override readonly waitMs: number | undefined;
  readonly operation: EdgeOperation;
  /** The status of the failure: the body's own when it is 400 or more, else HTTP's; null when there was no answer. */
  readonly status: number | null;
  readonly errorKey: string | null;
  readonly field: string | null;
  /** The platform's `cdn-requestid`, for its support. */
  readonly requestId: string | null;
  /** The mistakes of an EDGE_INVALID_REQUEST, each naming field, value and rule. */
  readonly mistakes: readonly string[];

  constructor(facts: EdgeErrorFacts) {
    const errorKey = name(facts.errorKey);
    const field = name(facts.field);
    const requestId = name(facts.requestId);
    const known = [
      facts.status === null || facts.status === undefined ? null : `status ${facts.status}`,
      errorKey === null ? null : `key ${errorKey}`,
      field === null ? null : `field ${field}`,
      requestId === null ? null : `request ${requestId}`,
    ].filter((part) => part !== null);
    const suffix = known.length === 0 ? "" : ` (${known.join(", ")})`;
    super(`${facts.operation}: ${shortenText(facts.text, MAX_TEXT_CHARS)}${suffix}`, { cause: facts.cause });
    this.code = facts.code;
    this.disposition = facts.disposition;
    this.waitMs = facts.waitMs;
    this.operation = facts.operation;
    this.status = facts.status ?? null;
    this.errorKey = errorKey;
    this.field = field;
    this.requestId = requestId;
    this.mistakes = (facts.mistakes ?? []).map(escapeText);
  }
}
