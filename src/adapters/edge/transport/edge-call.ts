import type { EdgeOperation } from "../edge-operation.ts";
import type { RequestPriority } from "./request-gate.ts";

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
