/** The routes of the search and of the export, with their window and filters. */

import { setImmediate as yieldToOthers } from "node:timers/promises";
import ipaddr from "ipaddr.js";
import type { Call, EmulatorContext } from "#emulator/emulator-context.ts";
import { type Filter, type Mistakes, readSearch, type Search } from "#emulator/query/request.ts";
import { json, type Reply, validationProblem } from "#emulator/reply.ts";
import { type Draft, logIdOf } from "#emulator/traffic/draft.ts";
import { fieldsOf, shareOf, toSearchRow, withOddity } from "#emulator/traffic/render-event.ts";
import { type ColumnName, type Columns, HORIZON_MS, type ZoneStore } from "#emulator/zone-store.ts";
import { DIMENSIONS, type Dimension } from "#platform/contract/event-logs.ts";
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

/** Returns the rows of a search or export at `nowMs`, oldest first. */
function findRows(store: ZoneStore, search: Search, nowMs: number): number[] {
  store.extendTo(nowMs);
  const matches = createMatcher(store.columns(), search);
  const rows = rowsInWindow(store, search, nowMs);
  return search.filters.length === 0 && search.query === "" ? rows : rows.filter(matches);
}

/** Returns one page of flat rows, newest first; events of the same millisecond by logId, descending. */
export function pageOfRows(rows: readonly number[], search: Pick<Search, "page" | "pageSize">): number[] {
  const end = rows.length - search.page * search.pageSize;
  return end <= 0 ? [] : rows.slice(Math.max(0, end - search.pageSize), end).reverse();
}

/** How far a window may reach into the future, because clocks differ. */
const FUTURE_TOLERANCE_MS = 5 * 60_000;

/** Returns the mistakes of a window. Its end must lie within the last 72 hours; its start may be older. */
export function checkWindow(search: Pick<Search, "to">, nowMs: number): Mistakes | undefined {
  if (search.to > nowMs + FUTURE_TOLERANCE_MS) {
    return { to: [`The value ${search.to} is not valid: to must not lie in the future (now is ${nowMs}).`] };
  }
  if (search.to < nowMs - HORIZON_MS) {
    return {
      to: [`The value ${search.to} is not valid: to must be within the last 72 hours (now is ${nowMs}).`],
    };
  }
  return undefined;
}

/** Returns the rows of the half-open window [from, to) that are visible at `nowMs`, oldest first. */
function rowsInWindow(store: ZoneStore, window: { from: number; to: number }, nowMs: number): number[] {
  const columns = store.columns();
  const oldestMs = Math.max(window.from, nowMs - HORIZON_MS + 1);
  const rows: number[] = [];
  for (let row = columns.lowerBound(oldestMs); row < columns.length() && columns.at(row) < window.to; row++) {
    if (columns.visibleAt(row) <= nowMs) rows.push(row);
  }
  return rows;
}

/** The columns that free text searches. */
const QUERY_COLUMNS: readonly ColumnName[] = ["ip", "ruleId", "url", "ua", "message"];

/**
 * Returns whether a text matches. `*` matches any run of characters, even none. Linear in practice, so no pattern can
 * block the emulator.
 */
function matchesWildcard(pattern: string, text: string): boolean {
  const [head = "", ...rest] = pattern.toLowerCase().split("*");
  const lower = text.toLowerCase();
  const tail = rest.pop();
  if (tail === undefined) return lower === head;
  if (!lower.startsWith(head) || lower.length < head.length + tail.length || !lower.endsWith(tail))
    return false;
  let position = head.length;
  for (const part of rest) {
    const found = lower.indexOf(part, position);
    if (found < 0) return false;
    position = found + part.length;
  }
  return position <= lower.length - tail.length;
}

/** Returns whether an address is in a network. An address without a prefix length is a network of its own. */
function isInNetwork(ip: string, cidr: string): boolean {
  if (!ipaddr.isValid(ip)) return false;
  const address = ipaddr.parse(ip);
  const whole = address.kind() === "ipv4" ? 32 : 128;
  const [network, bits] = cidr.includes("/")
    ? ipaddr.parseCIDR(cidr)
    : ([ipaddr.parse(cidr), whole] as const);
  return address.kind() === network.kind() && address.match(network, bits);
}

const MATCHES: Record<Filter["op"], (value: string, text: string) => boolean> = {
  eq: (value, text) => text === value,
  in: (value, text) => text === value,
  contains: (value, text) => text.toLowerCase().includes(value.toLowerCase()),
  cidr: (value, text) => isInNetwork(text, value),
  wildcard: matchesWildcard,
};

/**
 * Returns whether a text passes the filter. `eq` and `in` compare exactly; `contains` and `wildcard` ignore case. One
 * of several values is enough.
 */
function matchesFilter(filter: Filter, text: string): boolean {
  return filter.value.some((value) => MATCHES[filter.op](value, text));
}

/** Tests each distinct text of a column once. */
function perText(
  columns: Columns,
  name: ColumnName,
  matches: (text: string) => boolean,
): (row: number) => boolean {
  const dictionary = columns.dictionaryOf(name);
  const codes = columns.codesOf(name);
  const answers = new Map<number, boolean>();
  return (row) => {
    const code = codes[row] ?? 0;
    const known = answers.get(code);
    if (known !== undefined) return known;
    const answer = matches(dictionary.textOf(code));
    answers.set(code, answer);
    return answer;
  };
}

/** Returns the test for rows. Filters and the free text are combined with AND. */
export function createMatcher(
  columns: Columns,
  search: Pick<Search, "filters" | "query">,
): (row: number) => boolean {
  const tests = search.filters.map((filter) =>
    perText(columns, filter.field, (text) => matchesFilter(filter, text)),
  );
  if (search.query !== "") {
    const wanted = search.query.toLowerCase();
    const anywhere = QUERY_COLUMNS.map((name) =>
      perText(columns, name, (text) => text.toLowerCase().includes(wanted)),
    );
    tests.push((row) => anywhere.some((test) => test(row)));
  }
  return (row) => tests.every((test) => test(row));
}
