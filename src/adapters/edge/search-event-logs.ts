import { z } from "zod";
import {
  EventLogsSearchRequest,
  type EventLogsSearchResponse,
  SEARCH_RESPONSES,
} from "./contract/event-logs-search.ts";
import { Int32Id } from "./contract/int32.ts";
import { checkRequest } from "./transport/check-request.ts";
import type { EdgeCall } from "./transport/edge-call.ts";
import { readAnswer } from "./transport/read-answer.ts";
import type { EdgeTransport } from "./transport/transport.ts";

const Params = z.strictObject({ shieldZoneId: Int32Id, request: EventLogsSearchRequest });

export interface SearchEventLogsParams {
  readonly shieldZoneId: number;
  readonly request: EventLogsSearchRequest;
}

export interface SearchEventLogsResult {
  /** The page with unchecked rows and groups, so that a bad row affects no other. */
  readonly page: EventLogsSearchResponse;
  /** The page byte for byte. */
  readonly body: Buffer;
  readonly requestId: string | null;
}

/**
 * Returns one page of a flat or grouped search of the last 72 hours; platform API spec 4.7. A POST that changes
 * nothing.
 */
export async function searchEventLogs(
  transport: EdgeTransport,
  params: SearchEventLogsParams,
  signal?: AbortSignal,
): Promise<SearchEventLogsResult> {
  const { shieldZoneId, request } = checkRequest("search-event-logs", Params, params);
  const call: EdgeCall = {
    operation: "search-event-logs",
    method: "POST",
    path: `/shield/event-logs/${shieldZoneId}/search`,
    zoneId: shieldZoneId,
    body: request,
    isReadOnly: true,
    expects: "json",
    // The one operation of which the document shows the status.
    successes: [200],
  };
  const reply = await transport.request(call, signal);
  const asked = (request.groupBy ?? []).length === 0 ? "rows" : "groups";
  const page = readAnswer(SEARCH_RESPONSES[asked], call, reply);
  if (!Number.isSafeInteger(page.total))
    transport.warn(`${call.operation}: the total is beyond 2^53 and was rounded to ${page.total}`);
  return {
    page,
    body: reply.body,
    requestId: reply.requestId,
  };
}
