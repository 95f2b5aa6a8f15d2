import type { EdgeOperation } from "../edge-operation.ts";
import type { RequestPriority } from "./request-gate.ts";

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
  /** The only status of a success; every 2xx when unset. The platform sends many failures with 202. */
  readonly onlyStatus?: number;
  /** `normal` when unset. */
  readonly priority?: RequestPriority;
  /**
   * Reads the whole body in place of the transport, undefined when it is not JSON. May give the body's memory away, the
   * reply's body is then empty.
   */
  readonly decode?: (body: Buffer) => Promise<unknown>;
}

/** Whether a second copy of the call does no harm when the fate of the first is unknown. */
export function isRepeatable(call: EdgeCall): boolean {
  return call.method !== "POST" || call.isReadOnly === true;
}
