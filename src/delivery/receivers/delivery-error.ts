/** Why a delivery failed. */

import type { z } from "zod";
import { type Disposition, ServiceError, toError } from "#lib/errors.ts";
import { cutText, toLine } from "#lib/text.ts";

/**
 * The cause of the failure, from a closed set. BUSY: 429, 502 or 504, or another 5xx with Retry-After. UNAVAILABLE: any
 * other 5xx. UNREACHABLE: no answer. GONE: 410, the address is gone for good. REDIRECTED: redirects are not followed.
 * ADDRESS_REFUSED: the address is not a public one. RECIPIENT_DEFERRED: some recipients have the message, others may
 * accept it later.
 */
type DeliveryErrorCode =
  | "ENDPOINT_BUSY"
  | "ENDPOINT_UNAVAILABLE"
  | "ENDPOINT_UNREACHABLE"
  | "ENDPOINT_TIMEOUT"
  | "ENDPOINT_REJECTED"
  | "ENDPOINT_REDIRECTED"
  | "ENDPOINT_GONE"
  | "ADDRESS_REFUSED"
  | "RECIPIENT_DEFERRED"
  | "STREAM_FAILED";

/**
 * A message that was not accepted, as far as the sender can know. The text contains no path, query, header or body of
 * the request.
 */
export class DeliveryError extends ServiceError {
  override readonly name = "DeliveryError";
  readonly code: DeliveryErrorCode;
  readonly disposition: Disposition;
  override readonly waitMs: number | undefined;

  constructor(facts: {
    code: DeliveryErrorCode;
    disposition: Disposition;
    text: string;
    waitMs?: number | undefined;
  }) {
    super(facts.text);
    this.code = facts.code;
    this.disposition = facts.disposition;
    this.waitMs = facts.waitMs;
  }
}

interface Failure {
  readonly code: string;
  readonly disposition: Disposition;
  readonly waitMs: number | undefined;
  /** One line, free of secrets. */
  readonly text: string;
}

/**
 * Returns a notifier's failure for the outbox. Only this service's own errors are quoted, because other errors may
 * contain secrets.
 */
export function describeFailure(thrown: unknown): Failure {
  if (thrown instanceof ServiceError) {
    const { code, disposition, waitMs, message } = thrown;
    return { code, disposition, waitMs, text: toLine(message, 300) };
  }
  const { name } = toError(thrown);
  const isTimeout = name === "TimeoutError";
  return {
    code: isTimeout ? "ATTEMPT_TIMEOUT" : "UNEXPECTED",
    disposition: "retry",
    waitMs: undefined,
    text: isTimeout ? "the attempt took too long" : cutText(name, 60),
  };
}

interface StatusVerdict {
  readonly code: DeliveryErrorCode;
  readonly disposition: Disposition;
  readonly waitMs?: number;
}

/** Statuses with which the receiver, or a gateway in front of it, asks for fewer requests. */
const BUSY = new Set([429, 502, 504]);
/** 4xx statuses that refuse the message for the moment. */
const TRANSIENT = new Set([408, 425]);

/**
 * Returns the error for a receiver's status; null if the message was accepted. All channels use this table. Only 2xx is
 * success. Most 4xx would refuse the same bytes again. `retryAfterMs` is the answer's Retry-After, null without one.
 */
export function classifyStatus(status: number, retryAfterMs: number | null): StatusVerdict | null {
  if (status >= 200 && status < 300) return null;
  const isAsked = retryAfterMs !== null && status >= 500;
  if (BUSY.has(status) || isAsked) {
    const wait = retryAfterMs === null ? {} : { waitMs: retryAfterMs };
    return { code: "ENDPOINT_BUSY", disposition: "wait", ...wait };
  }
  if (status >= 500 || TRANSIENT.has(status)) return { code: "ENDPOINT_UNAVAILABLE", disposition: "retry" };
  if (status === 410) return { code: "ENDPOINT_GONE", disposition: "give-up" };
  if (status < 400) return { code: "ENDPOINT_REDIRECTED", disposition: "give-up" };
  return { code: "ENDPOINT_REJECTED", disposition: "give-up" };
}

/** Returns a receiver's JSON answer in the expected shape; null for anything else and for a lost answer. */
export function readReply<Shape>(body: string | null, schema: z.ZodType<Shape>): Shape | null {
  try {
    return schema.safeParse(JSON.parse(body ?? "null")).data ?? null;
  } catch {
    return null;
  }
}
