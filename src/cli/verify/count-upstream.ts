import { HOUR_MS } from "../../coverage/horizon.ts";
import { EventGroup } from "../../edge/contract/event-logs-search.ts";
import type { EdgeClient } from "../../edge/edge-client.ts";
import { EdgeError } from "../../edge/edge-error.ts";
import { searchPages } from "../../edge/search-pages.ts";
import { cleanText, MAX_DIMENSION_CHARS } from "../../ingest/clean-text.ts";
import type { Span } from "../read-span.ts";

/** The most groups that the platform gives at a time; platform API spec 2.3. */
const PAGE_SIZE = 500;

/** Hour (epoch ms) to rule to events. */
export type Cells = Map<number, Map<string, number>>;

export function addTo(cells: Cells, hour: number, ruleId: string, events: number): void {
  const rules = cells.get(hour) ?? new Map<string, number>();
  cells.set(hour, rules.set(ruleId, (rules.get(ruleId) ?? 0) + events));
}

/**
 * What the platform counts of each rule in each hour of a span of whole hours, at most 500 of them: a page of groups
 * per call, whatever the number of hours.
 * @throws {EdgeError} also when a group cannot be read or its hours do not add up: half a count proves nothing.
 */
export async function countUpstream(
  edge: Pick<EdgeClient, "searchEventLogs">,
  shieldZoneId: number,
  { from, to }: Span,
): Promise<Cells> {
  const buckets = (to - from) / HOUR_MS;
  const request = { from, to, groupBy: ["ruleId" as const], buckets, pageSize: PAGE_SIZE };
  const cells: Cells = new Map();
  for await (const { page } of searchPages(edge.searchEventLogs, { shieldZoneId, request })) {
    for (const entry of page.groups) {
      const { key, sparkline } = readGroup(entry, buckets);
      const ruleId = cleanText(key["ruleId"] ?? "", MAX_DIMENSION_CHARS);
      for (const [index, events] of sparkline.entries())
        if (events > 0) addTo(cells, from + index * HOUR_MS, ruleId, events);
    }
  }
  return cells;
}

function readGroup(entry: unknown, buckets: number) {
  const read = EventGroup.safeParse(entry);
  const { key = {}, count, sparkline } = read.data ?? {};
  const sum = sparkline?.reduce((total, events) => total + events, 0);
  if (!sparkline || sparkline.length !== buckets || sum !== count) {
    const text = "a group of the answer cannot be read, or its hours do not add up to its count";
    throw new EdgeError({
      operation: "search-event-logs",
      code: "EDGE_MALFORMED",
      disposition: "retry",
      text,
    });
  }
  return { key, sparkline };
}
