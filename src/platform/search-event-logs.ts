/** The search and the export of events; platform API spec 4.7 and 4.8. */
import { z } from "zod";
import { isObject } from "#lib/json.ts";
import { DAY_MS } from "#lib/units.ts";
import {
  EventLogsExportRequest,
  EventLogsSearchRequest,
  type EventLogsSearchResponse,
  SEARCH_RESPONSES,
} from "./contract/event-logs.ts";
import { Int32Id, readEventTime } from "./contract/values.ts";
import { EdgeError } from "./edge-error.ts";
import { parseLogDay } from "./list-event-logs.ts";
import { checkRequest, type EdgeCall } from "./transport/call.ts";
import { readAnswer } from "./transport/exchange.ts";
import type { EdgeTransport, StreamLimits } from "./transport/transport.ts";

const Params = z.strictObject({ shieldZoneId: Int32Id, request: EventLogsSearchRequest });

export interface SearchEventLogsParams {
  readonly shieldZoneId: number;
  readonly request: EventLogsSearchRequest;
}

interface SearchEventLogsResult {
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

type Search = (params: SearchEventLogsParams, signal?: AbortSignal) => Promise<SearchEventLogsResult>;

/**
 * Yields the pages of a search from `request.page` (0 when unset) on, until totalPages or an empty page. Page indexes
 * shift when events arrive, so search a window that has ended (`to` in the past). Throws EDGE_CONTRADICTORY at a page
 * that contradicts itself or its request: such a page proves nothing, and a repeated search may help.
 */
export async function* searchPages(
  search: Search,
  params: SearchEventLogsParams,
  signal?: AbortSignal,
): AsyncGenerator<SearchEventLogsResult, void, undefined> {
  for (let index = params.request.page ?? 0; ; index++) {
    const request = { ...params.request, page: index };
    const result = await search({ ...params, request }, signal);
    const contradiction = findContradiction(result.page, request);
    if (contradiction !== null) throw toContradictory(result, contradiction);
    yield result;
    const { rows, groups, totalPages } = result.page;
    if (index + 1 >= totalPages || rows.length + groups.length === 0) return;
  }
}

function toContradictory({ requestId }: SearchEventLogsResult, contradiction: string): EdgeError {
  return new EdgeError({
    operation: "search-event-logs",
    code: "EDGE_CONTRADICTORY",
    disposition: "retry",
    text: `the answer contradicts itself: ${contradiction}`,
    status: 200,
    requestId,
  });
}

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 500;

type Page = Pick<EventLogsSearchResponse, "rows" | "groups" | "total" | "totalPages" | "page">;

/** Returns the page size that the platform uses; platform API spec 2.3. */
function pageSizeOf({ pageSize = DEFAULT_PAGE_SIZE }: EventLogsSearchRequest): number {
  return Math.min(Math.max(pageSize, 1), MAX_PAGE_SIZE);
}

/**
 * Returns whether the number of pages does not fit the total. One page more than the total needs is accepted, because
 * it is only empty.
 */
function isWrongPageCount({ total, totalPages }: Page, pageSize: number): boolean {
  // The number of pages is an int32, and the total was rounded.
  if (!Number.isSafeInteger(total)) return false;
  const needed = Math.ceil(total / pageSize);
  return totalPages < needed || totalPages > needed + 1;
}

/**
 * Returns how a page of a search contradicts itself or its request, or null. Each page is judged alone: between two
 * pages events arrive and expire, so totals may differ. A page with fewer rows than its total promises is no
 * contradiction, because events expire while it is made. The comparison with the platform's counts finds such losses.
 */
function findContradiction(page: Page, request: EventLogsSearchRequest): string | null {
  const index = request.page ?? 0;
  const pageSize = pageSizeOf(request);
  const shown = page.rows.length + page.groups.length;
  const last = index * pageSize + shown;
  if (shown > pageSize) return `a page of ${pageSize} holds ${shown} entries`;
  if (shown > 0 && last > page.total) return `the total is ${page.total}, and entry ${last} is shown`;
  if (isWrongPageCount(page, pageSize))
    return `a total of ${page.total} in pages of ${pageSize} is no ${page.totalPages} pages`;
  if (shown > 0 && page.page !== index) return `page ${index} was asked for, and page ${page.page} came`;
  const isOutside = (row: unknown) => {
    const at = isObject(row) ? readEventTime(row["timestamp"]) : null;
    return at !== null && isOutsideWindow(at, request);
  };
  return page.rows.some(isOutside) ? "a row lies outside the window that was asked for" : null;
}

/** The platform's retention. An entry further away from the requested time has a wrong time. */
const HORIZON_MS = 3 * DAY_MS;
/** A platform that compares times by the second rounds both ends of a window. */
const TOLERANCE_MS = 1_000;

interface Window {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns whether an event of this time (epoch ms) belongs to another window than the requested one. An event at `to`
 * may be inside, because the platform does not document whether its windows include their end. A time that no window
 * of the platform can hold is a wrong time of a single entry and is no sign of a wrong window.
 */
export function isOutsideWindow(timestamp: number, { from, to }: Window): boolean {
  const isBroken = timestamp < from - HORIZON_MS || timestamp > to + HORIZON_MS;
  return !isBroken && (timestamp < from - TOLERANCE_MS || timestamp > to + TOLERANCE_MS);
}

/**
 * Returns whether an entry of this time (epoch ms) belongs to another UTC day than the list (`MM-dd-yyyy`) that shows
 * it. The entry is still an event; the list contradicts itself.
 */
export function isOutsideDay(timestamp: number, date: string): boolean {
  const startsAt = parseLogDay(date);
  return startsAt === null || timestamp < startsAt || timestamp >= startsAt + DAY_MS;
}

const ExportRequest = z.strictObject({ shieldZoneId: Int32Id, request: EventLogsExportRequest });

/** A large export may take long, but a long silence is a failure. */
const DEFAULT_LIMITS: StreamLimits = { idleTimeoutMs: 30_000, timeoutMs: null };

interface ExportEventLogsParams {
  readonly shieldZoneId: number;
  readonly request: EventLogsExportRequest;
  readonly limits?: StreamLimits;
}

interface ExportEventLogsResult {
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
  const { shieldZoneId, request } = checkRequest("export-event-logs", ExportRequest, sent);
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
