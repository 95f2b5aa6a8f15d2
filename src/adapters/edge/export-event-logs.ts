import { z } from "zod";
import { EventLogsExportRequest } from "./contract/event-logs-export.ts";
import { Int32Id } from "./contract/int32.ts";
import { checkRequest } from "./transport/check-request.ts";
import type { EdgeCall } from "./transport/edge-call.ts";
import type { EdgeTransport, StreamLimits } from "./transport/transport.ts";

const Params = z.strictObject({ shieldZoneId: Int32Id, request: EventLogsExportRequest });

/** A large export may take long, but a long silence is a failure. */
const DEFAULT_LIMITS: StreamLimits = { idleTimeoutMs: 30_000, timeoutMs: null };

export interface ExportEventLogsParams {
  readonly shieldZoneId: number;
  readonly request: EventLogsExportRequest;
  readonly limits?: StreamLimits;
}

export interface ExportEventLogsResult {
  /**
   * The CSV file as it arrives. Loop over it or call its `return`, or the connection stays open until the idle limit.
   */
  readonly csv: AsyncGenerator<Buffer, void, undefined>;
  readonly requestId: string | null;
}

/**
 * Returns all matching events as CSV; platform API spec 4.8. The first column is `timestamp`, the others are
 * undocumented.
 */
export async function exportEventLogs(
  transport: EdgeTransport,
  params: ExportEventLogsParams,
  signal?: AbortSignal,
): Promise<ExportEventLogsResult> {
  const { limits = DEFAULT_LIMITS, ...sent } = params;
  const { shieldZoneId, request } = checkRequest("export-event-logs", Params, sent);
  const call: EdgeCall = {
    operation: "export-event-logs",
    method: "POST",
    path: `/shield/event-logs/${shieldZoneId}/export`,
    zoneId: shieldZoneId,
    body: request,
    isReadOnly: true,
    expects: "nothing",
  };
  const { chunks, requestId } = await transport.stream(call, limits, signal);
  return { csv: chunks, requestId };
}
