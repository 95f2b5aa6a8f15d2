/** The rows of a search: its window and its filters. */

import ipaddr from "ipaddr.js";
import { type ColumnName, type Columns, HORIZON_MS, type ZoneStore } from "../zone-store.ts";
import type { Filter, Mistakes, Search } from "./request.ts";

/** Returns the rows of a search or export at `nowMs`, oldest first. */
export function findRows(store: ZoneStore, search: Search, nowMs: number): number[] {
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
