import type { EventLogListResponse } from "./contract/event-log-list.ts";
import type { ListEventLogsParams } from "./list-event-logs.ts";

export interface PageOfPass {
  /** The token this page was asked with; null for the first. */
  readonly token: string | null;
  /** Where the next page begins; null when this is the last one. */
  readonly nextToken: string | null;
  /** The pass ended because a token came again: what was shown is not known to be everything. */
  readonly looped: boolean;
}

type List<Result> = (params: ListEventLogsParams, signal?: AbortSignal) => Promise<Result>;
interface Listed {
  readonly page: Pick<EventLogListResponse, "hasMoreData" | "continuationToken">;
}

/**
 * One pass over a day's log, from `continuationToken` (null: the beginning) to its end: hasMoreData false, or an empty,
 * null, absent or repeated token. Remembers every token of the pass, so a cycle of any length ends it.
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
