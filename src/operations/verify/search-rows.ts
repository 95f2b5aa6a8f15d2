import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import { searchPages } from "#adapters/edge/search-event-logs.ts";
import type { Span } from "#model/horizon.ts";
import { splitSpan } from "#stages/coverage/split-span.ts";

const PAGE_SIZE = 500;

/** Yields the unchecked rows of everything that the platform's search shows of a span. Divides a long result by time. */
export async function* searchRows(
  edge: Pick<EdgeClient, "searchEventLogs">,
  shieldZoneId: number,
  { from, to }: Span,
  signal?: AbortSignal,
  isWhole = true,
): AsyncGenerator<unknown, void, undefined> {
  const request = { from, to, pageSize: PAGE_SIZE };
  for await (const { page } of searchPages(edge.searchEventLogs, { shieldZoneId, request }, signal)) {
    const parts = isWhole ? splitSpan(from, to, page.total) : null;
    for (const part of parts ?? []) yield* searchRows(edge, shieldZoneId, part, signal, false);
    if (parts !== null) return;
    yield* page.rows;
  }
}
