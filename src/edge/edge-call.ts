import type { EdgeOperation } from "./edge-operation.ts";

/** One operation as the transport sends it. */
export interface EdgeCall {
  readonly operation: EdgeOperation;
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below the base address, already percent-encoded. */
  readonly path: string;
  /** Sent as JSON; checked by the operation's contract before it comes here. */
  readonly body?: unknown;
  /** A POST that changes nothing may be repeated like a GET. */
  readonly isReadOnly?: boolean;
  /** `nothing`: the answer's body does not matter unless it reports a failure. */
  readonly expects: "json" | "nothing";
}

/** Whether a second copy of the call does no harm when the fate of the first is unknown. */
export function isRepeatable(call: EdgeCall): boolean {
  return call.method !== "POST" || call.isReadOnly === true;
}
