import { EdgeError } from "./edge-error.ts";
import { findContradiction } from "./find-contradiction.ts";
import type { SearchEventLogsParams, SearchEventLogsResult } from "./search-event-logs.ts";

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
