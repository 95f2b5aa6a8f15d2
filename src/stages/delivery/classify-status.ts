import type { Disposition } from "#lib/errors.ts";
import type { DeliveryErrorCode } from "./delivery-error.ts";

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
