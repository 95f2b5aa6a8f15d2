import { type Disposition, ServiceError } from "#lib/errors.ts";

/**
 * The cause of the failure, from a closed set. BUSY: 429, 502 or 504, or another 5xx with Retry-After. UNAVAILABLE: any
 * other 5xx. UNREACHABLE: no answer. GONE: 410, the address is gone for good. REDIRECTED: redirects are not followed.
 * ADDRESS_REFUSED: the address is not a public one. RECIPIENT_DEFERRED: some recipients have the message, others may
 * accept it later.
 */
export type DeliveryErrorCode =
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
