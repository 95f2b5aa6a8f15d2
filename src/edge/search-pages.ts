import type { SearchEventLogsParams, SearchEventLogsResult } from "./search-event-logs.ts";

type Search = (params: SearchEventLogsParams, signal?: AbortSignal) => Promise<SearchEventLogsResult>;

/**
 * The pages of a search from `request.page` (0 when unset) on, until totalPages or an empty page. Page indexes shift when
 * events arrive, so ask for a window that has ended (`to` in the past).
 */
export async function* searchPages(
  search: Search,
  params: SearchEventLogsParams,
  signal?: AbortSignal,
): AsyncGenerator<SearchEventLogsResult, void, undefined> {
  for (let index = params.request.page ?? 0; ; index++) {
    const result = await search({ ...params, request: { ...params.request, page: index } }, signal);
    yield result;
    const { rows, groups, totalPages } = result.page;
    if (index + 1 >= totalPages || rows.length + groups.length === 0) return;
  }
}
