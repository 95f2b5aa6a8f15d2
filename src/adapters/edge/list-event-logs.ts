import { z } from "zod";
import { EventLogListResponse } from "./contract/event-log-list.ts";
import { Int32Id } from "./contract/int32.ts";
import { LogDay } from "./log-day.ts";
import { checkRequest } from "./transport/check-request.ts";
import type { EdgeCall } from "./transport/edge-call.ts";
import { PathText, toSegment } from "./transport/path-segment.ts";
import { readAnswer } from "./transport/read-answer.ts";
import type { EdgeTransport } from "./transport/transport.ts";

const Params = z.strictObject({
  shieldZoneId: Int32Id,
  date: LogDay,
  continuationToken: PathText.nullable(),
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
    onlyStatus: 200,
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

/**
 * The result of reading a page's bytes: the answer without its entries (undefined when it is not JSON), and the
 * content.
 */
export interface ReadPage<Content> {
  readonly envelope: unknown;
  /** Rejects when the bytes differ from what the envelope promised. */
  readonly content: Promise<Content>;
}

export interface ReadEventLogsResult<Content> {
  /** The page without entries. */
  readonly page: EventLogListResponse;
  readonly content: Promise<Content>;
  /** Size of the page, decompressed. */
  readonly bytes: number;
}

/**
 * Returns the same page with the entries read by `read`, which may use another thread. `read` is called once per
 * attempt and owns the bytes that it gets.
 */
export async function readEventLogs<Content>(
  transport: EdgeTransport,
  params: ListEventLogsParams,
  read: (body: Buffer) => Promise<ReadPage<Content>>,
  signal?: AbortSignal,
): Promise<ReadEventLogsResult<Content>> {
  let latest: { content: Promise<Content>; bytes: number } | undefined;
  const decode = async (body: Buffer) => {
    const bytes = body.length;
    const { envelope, content } = await read(body);
    latest = { content, bytes };
    // The caller awaits the content later, or never when the answer is refused. Until then a failure must not be
    // unhandled.
    content.catch(() => undefined);
    return envelope;
  };
  const call = { ...toCall(params), decode };
  const reply = await transport.request(call, signal);
  const page = readAnswer(EventLogListResponse, call, reply);
  if (latest === undefined) throw new Error("the transport answered without reading the body");
  return { page, ...latest };
}
