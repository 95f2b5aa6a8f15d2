/** The comparisons of events: identifiers and records. */

import { readLogIdHashes } from "#db/ingest/raw-blocks.ts";
import { listDays } from "#db/people/retention.ts";
import {
  COMPARED,
  type ComparedField,
  readListedEvents,
  readStoredValues,
  type StoredValues,
} from "#db/proof/hour-contents.ts";
import { toSearchEvent } from "#ingest/rules/read-page.ts";
import { many, showTime } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { type Span, toDay } from "#model/horizon.ts";
import { type EventWithoutFacts, hashEventKey, unpackLogIdHashes } from "#model/waf-event.ts";
import { isFullAddress } from "#people/rules/pseudonym.ts";
import { EventRow } from "#platform/contract/event-logs.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { searchPages } from "#platform/search-event-logs.ts";
import { splitSpan } from "#proof/rules/plan-search.ts";
import { type Checked, type Compared, type Difference, eachPart, findAskable, showIds } from "./check.ts";

const SAMPLED_HOURS = 3;

/**
 * Compares the events of a few hours, spread over the span, with the platform, id by id and value by value. Events that
 * every route has withdrawn are notes.
 */
export async function checkIds(
  { db, zoneId, now, onStep, signal, ...span }: Checked,
  edge: Pick<EdgeClient, "searchEventLogs">,
): Promise<Compared> {
  const { askable, notes: leftOut } = findAskable(now, span);
  const notes = [...leftOut];
  const hours = askable === null ? [] : sampleHours(askable);
  const differences: Difference[] = [];
  let compared = 0;
  for (const [index, from] of hours.entries()) {
    onStep("event ids", index / hours.length);
    const hour = { from, to: from + HOUR_MS };
    const shown = await searchEvents(edge, zoneId, hour, signal);
    const stored = new Map((await readStoredValues(db, zoneId, hour)).map((event) => [event.logId, event]));
    compared += shown.size;
    const missing = [...shown.keys()].filter((id) => !stored.has(id));
    const extra = [...stored.values()].filter(({ logId }) => !shown.has(logId));
    const withdrawn = showIds("withdrawn by the platform:", pickIds(extra, true));
    if (withdrawn !== null) notes.push(`${showTime(from)}: ${withdrawn}`);
    const sizes = { at: from, ruleId: null, expected: shown.size, found: stored.size };
    const parts = [showIds("missing", missing), showIds("not on the platform", pickIds(extra, false))];
    const detail = joinParts(parts);
    const isUnshown = missing.length === 0 ? ({ isUnshown: true } as const) : {};
    if (detail !== null) differences.push({ ...sizes, detail, ...isUnshown });
    const values = joinParts(describeValues(shown, stored));
    if (values !== null) differences.push({ ...sizes, detail: values, correctsItself: true });
  }
  return {
    name: "event ids",
    sides: ["the platform", "stored"],
    compared: `${many(hours.length, "hour")}, ${many(compared, "id")}`,
    differences,
    notes,
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

function pickIds(events: readonly StoredValues[], isWithdrawn: boolean): string[] {
  return events.flatMap((event) => (event.isWithdrawn === isWithdrawn ? [event.logId] : []));
}

function joinParts(parts: readonly (string | null)[]): string | null {
  return parts.filter((part) => part !== null).join("; ") || null;
}

const WORDS: Readonly<Record<ComparedField, string>> = {
  ruleId: "rule",
  ip: "address",
  url: "URL",
  ua: "user agent",
  country: "country",
  asn: "network",
  action: "action",
};

/** Names the events of which both sides have a value, and not the same one, by field. */
function describeValues(
  shown: ReadonlyMap<string, EventWithoutFacts>,
  stored: ReadonlyMap<string, StoredValues>,
): (string | null)[] {
  return COMPARED.map((field) => {
    const isUsable = (value: string | null | undefined) =>
      value != null && value !== "" && (field !== "ip" || isFullAddress(value));
    const differing = [...shown].flatMap(([id, event]) => {
      const known = stored.get(id)?.values?.[field];
      return isUsable(known) && isUsable(event[field]) && known !== event[field] ? [id] : [];
    });
    return showIds(`another ${WORDS[field]} of`, differing);
  });
}

async function searchEvents(
  edge: Pick<EdgeClient, "searchEventLogs">,
  zoneId: number,
  span: Span,
  signal: AbortSignal,
): Promise<Map<string, EventWithoutFacts>> {
  const events = new Map<string, EventWithoutFacts>();
  for await (const row of searchRows(edge, zoneId, span, signal)) {
    const read = EventRow.safeParse(row);
    // Ingest also puts a row without an id or a time into quarantine.
    if (read.success) events.set(read.data.logId, toSearchEvent(read.data));
  }
  return events;
}

/** Checks that every event that the list showed first has its record. */
export async function checkRecords({ db, zoneId, onStep, ...span }: Checked): Promise<Compared> {
  const differences: Difference[] = [];
  let events = 0;
  const firstDay = (await listDays(db, "raw_blocks"))[0] ?? toDay(span.to);
  const first = Math.max(span.from, Math.min(span.to, Date.parse(firstDay)));
  for (const { from, to } of eachPart({ from: first, to: span.to }, HOUR_MS)) {
    onStep("raw records", (from - span.from) / (span.to - span.from));
    const listed = await readListedEvents(db, zoneId, { from, to });
    if (listed.length === 0) continue;
    events += listed.length;
    const packed = await readLogIdHashes(db, zoneId, { fromMs: from, toMs: to, days: [toDay(from)] });
    const kept = new Set(packed.flatMap(unpackLogIdHashes));
    const missing = listed.filter((event) => !kept.has(hashEventKey(event)));
    if (missing.length === 0) continue;
    const found = listed.length - missing.length;
    differences.push({
      at: from,
      ruleId: null,
      expected: listed.length,
      found,
      detail: showIds(
        "without",
        missing.map(({ logId }) => logId),
      ),
    });
  }
  return {
    name: "raw records",
    sides: ["events of the list", "records"],
    compared: `${many(events, "event")} of the list`,
    differences,
    notes: first > span.from ? [`before ${firstDay} UTC: records are past their retention`] : [],
  };
}

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
