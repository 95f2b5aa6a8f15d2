import { z } from "zod";
import { EventLogListResponse } from "./contract/event-log-list.ts";
import { Int32Id } from "./contract/int32.ts";
import { LogDay } from "./log-day.ts";
import { checkRequest } from "./transport/check-request.ts";
import { type EdgeCall, WITH_BODY } from "./transport/edge-call.ts";
import { TokenText, toSegment } from "./transport/path-segment.ts";
import { readAnswer } from "./transport/read-answer.ts";
import type { EdgeTransport } from "./transport/transport.ts";

const Params = z.strictObject({
  shieldZoneId: Int32Id,
  date: LogDay,
  continuationToken: TokenText.nullable(),
});

export interface ListEventLogsParams {
  readonly shieldZoneId: number;
  /** A UTC day, `MM-dd-yyyy`; only today and the two days before are served. */
  readonly date: string;
  /** Token that the previous page returned; null for the first page. */
  readonly continuationToken: string | null;
}

export interface ListEventLogsResult {
  /** The page with unchecked entries, so that a bad entry affects no other. */
  readonly page: EventLogListResponse;
  /** The page byte for byte. */
  readonly body: Buffer;
  readonly requestId: string | null;
}

function toCall(params: ListEventLogsParams): EdgeCall {
  const { shieldZoneId, date, continuationToken } = checkRequest("list-event-logs", Params, params);
  const first = `/shield/event-logs/${shieldZoneId}/${date}`;
  const path = continuationToken === null ? first : `${first}/${toSegment(continuationToken)}`;
  return {
    operation: "list-event-logs",
    method: "GET",
    path,
    zoneId: shieldZoneId,
    expects: "json",
    successes: WITH_BODY,
  };
}

/**
 * Returns one page of a day's log; platform API spec 4.9. The first page has no token segment at all. A day outside
 * the window is refused with 401 and a key: EDGE_WINDOW.
 */
export async function listEventLogs(
  transport: EdgeTransport,
  params: ListEventLogsParams,
  signal?: AbortSignal,
): Promise<ListEventLogsResult> {
  const call = toCall(params);
  const reply = await transport.request(call, signal);
  return {
    page: readAnswer(EventLogListResponse, call, reply),
    body: reply.body,
    requestId: reply.requestId,
  };
}

export interface ReadEventLogsResult {
  /** The page without entries. */
  readonly page: EventLogListResponse;
  /** The entries byte for byte. An entry may be no JSON. */
  readonly entries: readonly Buffer[];
  /** Size of the page, decompressed. */
  readonly bytes: number;
}

/** Returns the same page with its entries as bytes. */
export async function readEventLogs(
  transport: EdgeTransport,
  params: ListEventLogsParams,
  signal?: AbortSignal,
): Promise<ReadEventLogsResult> {
  const call = { ...toCall(params), list: "logs" };
  const reply = await transport.request(call, signal);
  const page = readAnswer(EventLogListResponse, call, reply);
  return { page, entries: reply.entries, bytes: reply.body.length };
}
