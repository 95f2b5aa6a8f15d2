import { isObject } from "#lib/is-object.ts";
import { readEventTime } from "./contract/epoch-ms.ts";
import type { EventLogsSearchRequest, EventLogsSearchResponse } from "./contract/event-logs-search.ts";
import { isOutsideWindow } from "./entry-outside.ts";

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
export function findContradiction(page: Page, request: EventLogsSearchRequest): string | null {
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
