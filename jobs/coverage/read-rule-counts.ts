import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import { searchPages } from "#adapters/edge/search-event-logs.ts";
import { HOUR_MS } from "#lib/units.ts";
import { addGroups, type CountsRead } from "#stages/coverage/add-groups.ts";
import { CountsUnreadableError } from "#stages/coverage/counts-unreadable-error.ts";
import type { CountedSpan } from "#stages/coverage/plan-comparison.ts";

/** Maximum page size of the platform; platform API spec 2.3. */
const PAGE_SIZE = 500;

/**
 * Returns the platform's counts of each rule in each bucket of the span, and the time of the oldest counted event, from all
 * pages of one grouped search.
 * @throws {CountsUnreadableError} when the counts contradict themselves, as when a rule appears while the pages are
 * read.
 */
export async function readRuleCounts(
  edge: Pick<EdgeClient, "searchEventLogs">,
  zoneId: number,
  span: CountedSpan,
  signal: AbortSignal,
): Promise<Pick<CountsRead, "cells" | "oldestAt">> {
  const to = span.from + span.buckets * (span.bucketMs ?? HOUR_MS);
  const grouped = { groupBy: ["ruleId" as const], buckets: span.buckets, pageSize: PAGE_SIZE };
  const params = { shieldZoneId: zoneId, request: { from: span.from, to, ...grouped } };
  const read: CountsRead = { rules: new Set(), cells: new Map(), oldestAt: null };
  let total = 0;
  for await (const { page } of searchPages(edge.searchEventLogs, params, signal)) {
    addGroups(read, page.groups, span);
    total = page.total;
  }
  if (read.rules.size !== total)
    throw new CountsUnreadableError(`the platform names ${total} rules and shows ${read.rules.size}`);
  return read;
}
