import type { Search } from "#emulator/query/request.ts";
import { createMatcher, groupRows, pageOfRows } from "#emulator/routes/search-event-logs.ts";
import type { Draft } from "#emulator/traffic/draft.ts";
import { createColumns } from "#emulator/zone-store.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { isSameAddress, isWithin } from "./naive-network.ts";

/**
 * Runs the emulator's own search over given events: naive code that shares nothing with Longwatch's. Networks are
 * computed here, because the emulator has no masked addresses.
 */
export function createNaiveSearch(events: readonly WafEvent[]) {
  const sorted = events.toSorted((a, b) => a.occurredAt - b.occurredAt || (a.logId < b.logId ? -1 : 1));
  const columns = createColumns();
  for (const event of sorted) columns.push(toDraft(event));

  return (search: Search) => {
    const isOfAddress = ({ field, op }: Search["filters"][number]) =>
      field === "ip" && (op === "eq" || op === "in");
    const networks = search.filters.filter(({ op }) => op === "cidr");
    const addresses = search.filters.filter(isOfAddress);
    const matches = createMatcher(columns, {
      ...search,
      filters: search.filters.filter((filter) => filter.op !== "cidr" && !isOfAddress(filter)),
    });
    const found = sorted.flatMap(({ occurredAt, ip }, row) => {
      const isInWindow = occurredAt >= search.from && occurredAt < search.to;
      const isInside = networks.every(({ value }) => value.some((network) => isWithin(ip ?? "", network)));
      const isAsked = addresses.every(({ value }) => isSameAddress(ip ?? "", value));
      return isInWindow && isInside && isAsked && matches(row) ? [row] : [];
    });
    if (search.groupBy.length > 0) return { kind: "groups" as const, ...groupRows(columns, found, search) };
    const page = pageOfRows(found, search).map((row) => toRow(sorted[row]));
    const all = found.map((row) => toRow(sorted[row])).reverse();
    return { kind: "rows" as const, total: found.length, page, all };
  };
}

function toDraft(event: WafEvent): Draft {
  const text = (value: string | null) => value ?? "";
  const rule = { feature: text(event.feature), ruleId: text(event.ruleId), message: text(event.message) };
  const { ip, ja4, ua, url, asn, country, action } = event;
  const dimensions = { ip, ja4, ua, url, asn, country, action };
  const texts = Object.fromEntries(Object.entries(dimensions).map(([name, value]) => [name, text(value)]));
  // Only what the columns hold is read of it.
  return {
    at: event.occurredAt,
    visibleAt: event.occurredAt,
    slot: 0,
    source: 0,
    rule,
    ...texts,
  } as unknown as Draft;
}

function toRow(event: WafEvent | undefined) {
  if (event === undefined) throw new RangeError("no such row");
  const { occurredAt, logId, feature, ruleId, ip, ja4, ua, url, asn, country, action, message } = event;
  const fields = Object.entries({ feature, ruleId, ip, ja4, ua, url, asn, country, action });
  return {
    logId,
    occurredAt,
    fields: Object.fromEntries(fields.map(([name, value]) => [name, value ?? ""])) as Record<string, string>,
    message: message ?? "",
  };
}
