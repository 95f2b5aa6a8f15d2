/** One call of the platform: its operation, its path and the gate that lets it pass. */
import { z } from "zod";

/** The eleven operations; the names appear in errors, metrics and budgets. */
export type EdgeOperation =
  | "list-api-keys"
  | "set-hostname-key-type"
  | "check-dns-zone"
  | "add-container"
  | "update-application"
  | "delete-volume-instances"
  | "search-event-logs"
  | "list-event-logs"
  | "export-event-logs"
  | "get-recommendation"
  | "get-rule-metrics";

/** One operation as the transport sends it. */
export interface EdgeCall {
  readonly operation: EdgeOperation;
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Path below the base address, already percent-encoded. */
  readonly path: string;
  /** Sent as JSON. The operation's contract has checked it before. */
  readonly body?: unknown;
  /** A POST that changes nothing may be retried like a GET. */
  readonly isReadOnly?: boolean;
  /** `nothing`: the answer's body is ignored unless it reports a failure. */
  readonly expects: "json" | "nothing";
  /** Whether an answer without a body is a success as well; it is read as an object without members. */
  readonly mayBeEmpty?: boolean;
  /** The statuses of a success; every 2xx when unset. The platform sends many failures with 202. */
  readonly successes?: readonly number[];
  /** The shield zone that the operation is about; unset if it is about none. */
  readonly zoneId?: number;
  /** `normal` when unset. */
  readonly priority?: RequestPriority;
  /** The list of the answer whose entries are not parsed but returned as bytes. */
  readonly list?: string;
}

/** The successes with a body, for operations of which the platform's document shows no status. */
export const WITH_BODY = [200, 201, 203, 206];

/** Returns whether a second copy of the call is harmless when the outcome of the first is unknown. */
export function isRepeatable(call: EdgeCall): boolean {
  return call.method !== "POST" || call.isReadOnly === true;
}

/**
 * Order of requests while the budget is scarce. `low` is for work that a person started and that has no deadline,
 * such as a long backfill: it leaves a reserve to the calls that have to keep up with the platform's 72 hours.
 */
export type RequestPriority = "normal" | "low";

/** Admits requests. The transport calls it before every attempt. */
export interface RequestGate {
  /**
   * Resolves when one request may be sent, and rejects with the signal's reason once that aborts. Rejects with
   * ZonePausedError if the platform has refused the zone and the wait would be long. `zoneId` is null for a request of no
   * zone.
   */
  enter(priority: RequestPriority, signal: AbortSignal, zoneId: number | null): Promise<void>;
  /** Reports that the platform answered 429. Null when the answer named no time. Returns at once. */
  limited(retryAfterMs: number | null, zoneId: number | null): void;
  /** Reports that the platform answered a request for the zone. Returns at once. */
  answered(zoneId: number): void;
}

/** Thrown instead of a request, because the platform refused the zone shortly before. */
export class ZonePausedError extends Error {
  override readonly name = "ZonePausedError";
  readonly waitMs: number;

  constructor(zoneId: number, waitMs: number) {
    const seconds = Math.ceil(waitMs / 1_000);
    super(`the platform refused zone ${zoneId} (429); the next request for it may be sent in ${seconds} s`);
    this.waitMs = waitMs;
  }
}

/** Admits every request at once; for commands that a person runs one call at a time. */
export const openGate: RequestGate = { enter: async () => {}, limited: () => {}, answered: () => {} };

/**
 * Text that may become one segment of a path. Dots alone would lead to another operation, and half a surrogate pair
 * cannot be encoded.
 */
export const PathText = pathText(4_096);

/** The platform does not document how long a continuation token may be. Few servers accept a longer address. */
export const MAX_TOKEN_BYTES = 65_536;

export const TokenText = pathText(MAX_TOKEN_BYTES);

function pathText(maxBytes: number) {
  return z
    .string()
    .min(1)
    .refine((text) => Buffer.byteLength(text) <= maxBytes, `must have at most ${maxBytes} bytes`)
    .refine((text) => text !== "." && text !== "..", "must not be a dot segment")
    .refine((text) => !/\p{Cs}/u.test(text), "must be well-formed Unicode");
}

/** Percent-encodes everything that a segment may not hold, including `/` and `=` of tokens. */
export function toSegment(text: string | number): string {
  return encodeURIComponent(text);
}
