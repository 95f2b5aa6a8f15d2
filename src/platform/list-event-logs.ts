/** The day's list of events; platform API spec 4.9. */
import { z } from "zod";
import { EventLogListResponse } from "./contract/event-logs.ts";
import { Int32Id } from "./contract/values.ts";
import { checkRequest, type EdgeCall, TokenText, toSegment, WITH_BODY } from "./transport/call.ts";
import { readAnswer } from "./transport/exchange.ts";
import type { EdgeTransport } from "./transport/transport.ts";

/** Returns the UTC day of a time (epoch ms) in the date-paged list's format: `MM-dd-yyyy`. */
export function toLogDay(atMs: number): string {
  const [year, month, day] = new Date(atMs).toISOString().slice(0, 10).split("-");
  return `${month}-${day}-${year}`;
}

/** Returns the start of a UTC day `MM-dd-yyyy` in epoch ms, or null when it is no day of the calendar. */
export function parseLogDay(text: string): number | null {
  const match = /^(\d{2})-(\d{2})-(\d{4})$/.exec(text);
  if (match === null) return null;
  const startsAt = Date.parse(`${match[3]}-${match[1]}-${match[2]}T00:00:00Z`);
  // Date.parse turns 02-30 into a day of March.
  return Number.isNaN(startsAt) || toLogDay(startsAt) !== text ? null : startsAt;
}

const LogDay = z.string().refine((text) => parseLogDay(text) !== null, "must be a day written MM-dd-yyyy");

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

interface ListEventLogsResult {
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

export interface PageOfPass {
  /** The token of the request for this page; null for the first. */
  readonly token: string | null;
  /** The token of the next page; null when this is the last one. */
  readonly nextToken: string | null;
  /** The pass ended because a token was repeated, so it may not have shown every page. */
  readonly looped: boolean;
}

type List<Result> = (params: ListEventLogsParams, signal?: AbortSignal) => Promise<Result>;
interface Listed {
  readonly page: Pick<EventLogListResponse, "hasMoreData" | "continuationToken">;
}

/**
 * Yields one pass over a day's log, from `continuationToken` (null: the beginning) to its end: hasMoreData false, or
 * an empty, null, absent or repeated token. Remembers every token of the pass, so that a cycle of any length ends it.
 */
export async function* eventLogPages<Result extends Listed>(
  list: List<Result>,
  params: ListEventLogsParams,
  signal?: AbortSignal,
): AsyncGenerator<Result & PageOfPass, void, undefined> {
  const seen = new Set<string>();
  let token = params.continuationToken;
  while (true) {
    if (token !== null) seen.add(token);
    const result = await list({ ...params, continuationToken: token }, signal);
    const { hasMoreData, continuationToken } = result.page;
    const offered = hasMoreData ? continuationToken : null;
    const looped = offered !== null && seen.has(offered);
    const nextToken = looped ? null : offered;
    yield { ...result, token, nextToken, looped };
    if (nextToken === null) return;
    token = nextToken;
  }
}
