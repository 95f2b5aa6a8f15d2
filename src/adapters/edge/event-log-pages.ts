import type { EventLogListResponse } from "./contract/event-log-list.ts";
import type { ListEventLogsParams } from "./list-event-logs.ts";

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
