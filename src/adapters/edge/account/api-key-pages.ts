import type { ApiKeyList, ApiKeyListQuery } from "../contract/api-key-list.ts";

type List = (params: ApiKeyListQuery, signal?: AbortSignal) => Promise<ApiKeyList>;

/**
 * Yields the pages of the key list from `params.page` (1 when unset) on, until HasMoreItems is false or a page is
 * empty.
 */
export async function* apiKeyPages(
  list: List,
  params: ApiKeyListQuery,
  signal?: AbortSignal,
): AsyncGenerator<ApiKeyList, void, undefined> {
  for (let page = params.page ?? 1; ; page++) {
    const result = await list({ ...params, page }, signal);
    yield result;
    if (!result.HasMoreItems || result.Items.length === 0) return;
  }
}
