import { z } from "zod";
import { checkRequest } from "./check-request.ts";
import { EventLogListResponse } from "./contract/event-log-list.ts";
import { Int32Id } from "./contract/int32.ts";
import type { EdgeCall } from "./edge-call.ts";
import { LogDay } from "./log-day.ts";
import { PathText, toSegment } from "./path-segment.ts";
import { readAnswer } from "./read-answer.ts";
import type { EdgeTransport } from "./transport.ts";

const Params = z.strictObject({
  shieldZoneId: Int32Id,
  date: LogDay,
  continuationToken: PathText.nullable(),
});

export interface ListEventLogsParams {
  readonly shieldZoneId: number;
  /** A UTC day, `MM-dd-yyyy`; only today and the two days before are served. */
  readonly date: string;
  /** Of the page before; null for the first page. */
  readonly continuationToken: string | null;
}

export interface ListEventLogsResult {
  /** Entries unread: one bad entry costs only itself. */
  readonly page: EventLogListResponse;
  /** The page byte for byte. */
  readonly body: Buffer;
  readonly requestId: string | null;
}

/**
 * One page of a day's log; platform API spec 4.9. The first page has no token segment at all. A day outside the window is
 * refused with 401 and a key: EDGE_WINDOW.
 */
export async function listEventLogs(
  transport: EdgeTransport,
  params: ListEventLogsParams,
  signal?: AbortSignal,
): Promise<ListEventLogsResult> {
  const { shieldZoneId, date, continuationToken } = checkRequest("list-event-logs", Params, params);
  const first = `/shield/event-logs/${shieldZoneId}/${date}`;
  const path = continuationToken === null ? first : `${first}/${toSegment(continuationToken)}`;
  const call: EdgeCall = { operation: "list-event-logs", method: "GET", path, expects: "json" };
  const reply = await transport.request(call, signal);
  return {
    page: readAnswer(EventLogListResponse, call, reply),
    body: reply.body,
    requestId: reply.requestId,
  };
}
