/** The routes of the search and of the export. */

import { setImmediate as yieldToOthers } from "node:timers/promises";
import { DIMENSIONS, type Dimension } from "#platform/contract/event-logs.ts";
import type { Call, EmulatorContext } from "../emulator-context.ts";
import { readSearch, type Search } from "../query/request.ts";
import { checkWindow, findRows, pageOfRows } from "../query/rows.ts";
import { json, type Reply, validationProblem } from "../reply.ts";
import { type Draft, logIdOf } from "../traffic/draft.ts";
import { fieldsOf, shareOf, toSearchRow, withOddity } from "../traffic/render-event.ts";
import type { Columns, ZoneStore } from "../zone-store.ts";
import { findZone, readJsonBody, successBlock, unknownZoneBlock } from "./bodies.ts";

const FAILED = { rows: null, groups: null, total: 0, totalPages: 0, page: 0 };

/** Returns flat rows or groups of the last 72 hours (platform API spec 4.7). */
export function searchEventLogs(context: EmulatorContext, call: Call): Reply {
  const body = readJsonBody(call);
  if ("refusal" in body) return body.refusal;
  const zone = findZone(context, call);
  if ("refusal" in zone) return zone.refusal;
  const read = readSearch(body.value, "search");
  if ("mistakes" in read) return validationProblem(read.mistakes);
  const nowMs = context.now();
  const outside = checkWindow(read.search, nowMs);
  if (outside !== undefined) return validationProblem(outside);
  if (zone.store === undefined) return json(202, { ...FAILED, errorResponse: unknownZoneBlock() });

  const { search } = read;
  const { store } = zone;
  const rows = findRows(store, search, nowMs);
  const emptySide = context.switches.emptySide === "null" ? null : [];
  const grouped = search.groupBy.length > 0 ? groupRows(store.columns(), rows, search) : undefined;
  const total = grouped?.total ?? rows.length;
  const hidden = call.faults.find((fault) => fault.kind === "hidden-rows")?.share ?? 0;
  const flat = () =>
    pageOfRows(rows, search)
      .map((row) => store.draft(row))
      .filter((draft) => hidden === 0 || shareOf(draft) >= hidden);
  return json(200, {
    rows:
      grouped === undefined
        ? flat().map((draft) => withOddity(draft, toSearchRow(draft), call.faults))
        : emptySide,
    groups: grouped?.page ?? emptySide,
    total,
    totalPages: Math.ceil(total / search.pageSize),
    page: search.page,
    ...successBlock(context, "errorResponse"),
  });
}

const ROWS_PER_CHUNK = 500;
const HEADER = `timestamp,logId,${DIMENSIONS.join(",")}\r\n`;

/** Quotes a cell by RFC 4180. Formulas stay unchanged, because the platform does not protect spreadsheets. */
function cell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function toCsvLine(draft: Draft): string {
  const fields = fieldsOf(draft);
  const cells = DIMENSIONS.map((name) => cell(fields[name]));
  return `${[String(draft.at), logIdOf(draft.id), ...cells].join(",")}\r\n`;
}

async function* csvOf(store: ZoneStore, rows: readonly number[]): AsyncGenerator<string> {
  yield HEADER;
  // The events are drawn from keys taken now, so a store that is extended or redrawn meanwhile changes nothing.
  const keys = rows.map((row) => ({ at: store.columns().at(row), key: store.columns().key(row) }));
  for (let end = keys.length; end > 0; end -= ROWS_PER_CHUNK) {
    const chunk = keys.slice(Math.max(0, end - ROWS_PER_CHUNK), end).reverse();
    yield chunk.map(({ at, key }) => toCsvLine(store.redraw(at, key))).join("");
    await yieldToOthers();
  }
}

/** Returns all matching events as CSV, newest first (platform API spec 4.8). */
export function exportEventLogs(context: EmulatorContext, call: Call): Reply {
  const body = readJsonBody(call);
  if ("refusal" in body) return body.refusal;
  const zone = findZone(context, call);
  if ("refusal" in zone) return zone.refusal;
  const read = readSearch(body.value, "export");
  if ("mistakes" in read) return validationProblem(read.mistakes);
  const nowMs = context.now();
  const outside = checkWindow(read.search, nowMs);
  if (outside !== undefined) return validationProblem(outside);
  if (zone.store === undefined) return json(202, unknownZoneBlock());
  const rows = findRows(zone.store, read.search, nowMs);
  const name = `event-logs-${zone.id}.csv`;
  const headers = {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": `attachment; filename="${name}"`,
  };
  return { status: 200, headers, body: csvOf(zone.store, rows) };
}

interface Tally {
  readonly key: readonly string[];
  readonly first: number;
  count: number;
  lastSeen: number;
  readonly sparkline: number[];
  readonly seen: Map<string, Map<string, number>>;
}

const CONTEXT_DIMENSIONS = ["country", "asn", "action", "feature", "ruleId"] as const;

function textOf(columns: Columns, name: Dimension, row: number): string {
  return columns.dictionaryOf(name).textOf(columns.codesOf(name)[row] ?? 0);
}

function mostCommon(counts: ReadonlyMap<string, number>): string {
  const [top] = [...counts].sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1));
  return top?.[0] ?? "";
}

/**
 * Returns the bucket of a time. Bucket i covers [from + i*width, from + (i+1)*width) with width = (to - from) /
 * buckets (platform API spec 2.4). Computed in whole numbers, because a window may start as early as an int64 allows,
 * where floating point is off by whole buckets.
 */
function bucketOf(timeMs: number, search: Pick<Search, "from" | "to" | "buckets">): number {
  const sinceStart = BigInt(timeMs) - BigInt(search.from);
  const length = BigInt(search.to) - BigInt(search.from);
  return Number((sinceStart * BigInt(search.buckets)) / length);
}

function count(tally: Tally, columns: Columns, row: number, search: Search): void {
  const at = columns.at(row);
  tally.count++;
  tally.lastSeen = at;
  for (const name of CONTEXT_DIMENSIONS) {
    const text = textOf(columns, name, row);
    const counts = tally.seen.get(name) ?? new Map<string, number>();
    counts.set(text, (counts.get(text) ?? 0) + 1);
    tally.seen.set(name, counts);
  }
  if (search.buckets > 0) {
    const bucket = bucketOf(at, search);
    tally.sparkline[bucket] = (tally.sparkline[bucket] ?? 0) + 1;
  }
}

function contextOf(tally: Tally) {
  const of = (name: (typeof CONTEXT_DIMENSIONS)[number]) => tally.seen.get(name) ?? new Map<string, number>();
  const joined = (name: (typeof CONTEXT_DIMENSIONS)[number]) => [...of(name).keys()].sort().join(",");
  return {
    country: mostCommon(of("country")),
    asn: mostCommon(of("asn")),
    blocked: of("action").get("block") ?? 0,
    challenged: of("action").get("challenge") ?? 0,
    logged: of("action").get("log") ?? 0,
    features: joined("feature"),
    ruleIds: joined("ruleId"),
  };
}

function compareKeys(one: readonly string[], other: readonly string[]): number {
  for (const [index, text] of one.entries()) {
    const against = other[index] ?? "";
    if (text !== against) return text < against ? -1 : 1;
  }
  return 0;
}

/** Returns the groups of the given rows (oldest first): largest first, equal counts by key in code unit order. */
export function groupRows(columns: Columns, rows: readonly number[], search: Search) {
  const tallies = new Map<string, Tally>();
  for (const row of rows) {
    const codes = search.groupBy.map((name) => columns.codesOf(name)[row] ?? 0).join("/");
    let tally = tallies.get(codes);
    if (tally === undefined) {
      const key = search.groupBy.map((name) => textOf(columns, name, row));
      const sparkline = Array.from({ length: search.buckets }, () => 0);
      tally = { key, first: columns.at(row), count: 0, lastSeen: 0, sparkline, seen: new Map() };
      tallies.set(codes, tally);
    }
    count(tally, columns, row, search);
  }
  const ordered = [...tallies.values()].sort((a, b) => b.count - a.count || compareKeys(a.key, b.key));
  return {
    total: ordered.length,
    page: ordered.slice(search.page * search.pageSize, (search.page + 1) * search.pageSize).map((tally) => ({
      key: Object.fromEntries(search.groupBy.map((name, index) => [name, tally.key[index] ?? ""])),
      count: tally.count,
      firstSeen: tally.first,
      lastSeen: tally.lastSeen,
      context: contextOf(tally),
      ...(search.buckets > 0 ? { sparkline: tally.sparkline } : {}),
    })),
  };
}
