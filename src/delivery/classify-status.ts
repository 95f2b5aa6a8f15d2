import type { Disposition } from "../lib/errors.ts";
import type { DeliveryErrorCode } from "./delivery-error.ts";

interface StatusVerdict {
  readonly code: DeliveryErrorCode;
  readonly disposition: Disposition;
  readonly waitMs?: number;
}

/** Asked to slow down, by the receiver or by a gateway in front of it. */
const BUSY = new Set([429, 502, 504]);
/** Of the 4xx these say "not now" instead of "not this". */
const TRANSIENT = new Set([408, 425]);

/**
 * What a receiver's status means for the message; null where it was taken over. One table for every channel: 2xx alone
 * is success, and a 4xx would refuse the same bytes again. `retryAfterMs` is the answer's Retry-After, null without one.
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
