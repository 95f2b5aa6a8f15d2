import { readLogIds } from "../../../db/coverage/verify.ts";
import { splitSpan } from "../../coverage/split-span.ts";
import { EventRow } from "../../edge/contract/event-logs-search.ts";
import type { EdgeClient } from "../../edge/edge-client.ts";
import { searchPages } from "../../edge/search-pages.ts";
import { many } from "../../lib/format.ts";
import { HOUR_MS } from "../../lib/units.ts";
import type { Span } from "../../model/span.ts";
import { findAskable } from "./askable-hours.ts";
import type { Check, Checked, Difference } from "./check.ts";
import { showIds } from "./show-ids.ts";

const SAMPLED_HOURS = 3;
const PAGE_SIZE = 500;

/** Compares the events of a few hours, spread over the span, with the platform, id by id. */
export async function checkIds(
  { db, zoneId, now, onStep, ...span }: Checked,
  edge: Pick<EdgeClient, "searchEventLogs">,
): Promise<Check> {
  const { askable, notes } = findAskable(now, span);
  const hours = askable === null ? [] : sampleHours(askable);
  const differences: Difference[] = [];
  let compared = 0;
  for (const [index, from] of hours.entries()) {
    onStep("event ids", index / hours.length);
    const hour = { from, to: from + HOUR_MS };
    const shown = await searchIds(edge, zoneId, hour);
    const stored = new Set(await readLogIds(db, zoneId, hour));
    compared += shown.size;
    const missing = [...shown].filter((id) => !stored.has(id));
    const extra = [...stored].filter((id) => !shown.has(id));
    if (missing.length + extra.length === 0) continue;
    const detail = [showIds("missing", missing), showIds("not on the platform", extra)].filter(
      (part) => part !== null,
    );
    const sizes = { expected: shown.size, found: stored.size };
    differences.push({ at: from, ruleId: null, ...sizes, detail: detail.join("; ") });
  }
  return {
    name: "event ids",
    sides: ["the platform", "stored"],
    compared: `${many(hours.length, "hour")}, ${many(compared, "id")}`,
    differences,
    notes,
    failure: null,
  };
}

/** Returns the first and the last hour, and hours between them. */
function sampleHours({ from, to }: Span): number[] {
  const hours = (to - from) / HOUR_MS;
  const sampled = Math.min(hours, SAMPLED_HOURS);
  return Array.from(
    { length: sampled },
    (_, index) => from + Math.floor((index * (hours - 1)) / Math.max(sampled - 1, 1)) * HOUR_MS,
  );
}

async function searchIds(
  edge: Pick<EdgeClient, "searchEventLogs">,
  shieldZoneId: number,
  { from, to }: Span,
  isWhole = true,
): Promise<Set<string>> {
  const ids = new Set<string>();
  const request = { from, to, pageSize: PAGE_SIZE };
  for await (const { page } of searchPages(edge.searchEventLogs, { shieldZoneId, request })) {
    const parts = isWhole ? splitSpan(from, to, page.total) : null;
    for (const part of parts ?? [])
      for (const id of await searchIds(edge, shieldZoneId, part, false)) ids.add(id);
    if (parts !== null) return ids;
    for (const row of page.rows) {
      const read = EventRow.safeParse(row);
      // Ingest also puts a row without an id or a time into quarantine.
      if (read.success) ids.add(read.data.logId);
    }
  }
  return ids;
}
