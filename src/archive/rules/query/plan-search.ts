/** Plans a search: its tests, how many there may be, and the spans of its days. */

import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { cleanText, MAX_DIMENSION_CHARS, MAX_TEXT_CHARS } from "#lib/text.ts";
import type { Field, Filter } from "#model/fields.ts";
import { startOfDay, toDay } from "#model/horizon.ts";
import { toPlainAddress } from "#model/ip-address.ts";
import type { EventQuery, SearchClause, TextTest } from "#model/search-condition.ts";
import { containsTest, joinTests, wildcardTest } from "./text-test.ts";

/** A search or export body after the clamps of platform API spec 2.3. Times are epoch ms, the window is [from, to). */
export interface Search {
  readonly from: number;
  readonly to: number;
  /** Empty without free text. */
  readonly query: string;
  readonly filters: readonly Filter[];
  /** Empty for flat rows; no dimension twice. */
  readonly groupBy: readonly Field[];
  /** The names by which the groups were asked for; the fields themselves in a request of the platform's form. */
  readonly groupNames?: readonly string[];
  /** 0 for no sparkline. */
  readonly buckets: number;
  readonly page: number;
  readonly pageSize: number;
}

/** The mistakes by field, worded as in the platform's validation answers. */
export type Mistakes = Record<string, string[]>;

/** Columns that free text searches. A rule's name is its message. */
const QUERY_COLUMNS = ["ip", "ruleId", "url", "ua", "message"] as const;

/** A search in the form in which it runs: every clause must hold. */
export interface SearchPlan extends EventQuery, Pick<Search, "groupBy" | "buckets" | "page" | "pageSize"> {
  /** Tests of the method, which only records have. Every one must hold. */
  readonly methodClauses: readonly Omit<SearchClause, "columns">[];
  readonly groupNames: readonly string[];
  /** Start of the first bucket. May be before 1970, unlike `from`. */
  readonly bucketsFrom: number;
}

/**
 * Returns the tests per column in a form that storage can answer without knowing the search language. With `isMasked`
 * free text does not search addresses, because whether `207` is found would reveal the hidden part.
 */
export function planSearch(search: Search, { isMasked = false } = {}): SearchPlan {
  const { to, groupBy, groupNames = groupBy, buckets, page, pageSize } = search;
  // No event is older than 1970, and Postgres cannot hold a time as early as an int64 can.
  const from = Math.max(search.from, 0);
  const filters = withoutDuplicates(search.filters);
  const isMany = countTests(filters) > FEW_TESTS;
  const toClause = (filter: Filter) => ({
    tests: isMany ? joinTests(toTests(filter)) : toTests(filter),
    ...(filter.not === true ? { isNegated: true as const } : {}),
  });
  const asked: SearchClause[] = [];
  const methodClauses: SearchPlan["methodClauses"][number][] = [];
  for (const filter of filters)
    if (filter.field === "method") methodClauses.push(toClause(filter));
    else asked.push({ columns: [filter.field], ...toClause(filter) });
  const queried = QUERY_COLUMNS.filter((column) => !isMasked || column !== "ip");
  asked.push({ columns: queried, tests: [containsTest(search.query)] });
  const clauses = asked.filter(
    ({ tests, isNegated }) => isNegated === true || !tests.some(({ kind }) => kind === "anything"),
  );
  return {
    from,
    to,
    groupBy,
    groupNames,
    buckets,
    page,
    pageSize,
    clauses,
    methodClauses,
    bucketsFrom: search.from,
  };
}

/** Returns the tests of clauses alone; clauses about the method are left out. */
export function planFilters(filters: readonly Filter[]): SearchPlan["clauses"] {
  const flat = { query: "", groupBy: [], buckets: 0, page: 0, pageSize: 1 };
  return planSearch({ ...flat, from: 0, to: 0, filters }).clauses;
}

/** Returns whether the answer needs the records of the events. */
export function asksMethod({
  groupBy,
  methodClauses,
}: Pick<SearchPlan, "groupBy" | "methodClauses">): boolean {
  return methodClauses.length > 0 || groupBy.includes("method");
}

function toTests({ field, op, value }: Filter): readonly TextTest[] {
  switch (op) {
    case "eq":
    case "in":
      return [{ kind: "equals", texts: [...new Set(value.flatMap((text) => asKept(field, text)))] }];
    case "contains":
      return value.map(containsTest);
    case "wildcard":
      return value.map(wildcardTest);
    case "cidr":
      return [{ kind: "within", networks: [...new Set(value.flatMap((text) => toNetwork(text) ?? []))] }];
    default:
      return op satisfies never;
  }
}

/**
 * Returns the text as it was stored, so that a text that was cut is found by its full length as well. An address is
 * stored without port, brackets and list, and in older rows with them.
 */
function asKept(field: Field, text: string): string[] {
  const kept = cleanText(
    text,
    ["url", "ua", "host", "path"].includes(field) ? MAX_TEXT_CHARS : MAX_DIMENSION_CHARS,
  );
  return field === "ip" ? [toPlainAddress(kept), kept] : [kept];
}

/** Up to this many tests of a request are separate conditions in its statements, so that indexes can answer them. */
const FEW_TESTS = 16;
/** Equal texts are looked up in a hash table: this many cost about as much as one search within a text. */
export const EQUALS_PER_TEST = 50;

interface CountedTest {
  readonly field?: unknown;
  readonly op?: unknown;
  readonly value?: unknown;
  readonly not?: unknown;
}

/** Returns how many tests the filters require per event. A duplicate value or filter counts once. */
export function countTests(filters: readonly CountedTest[]): number {
  const counted = new Set<string>();
  let tests = 0;
  for (const { field, op, value, not } of filters) {
    const values = new Set<unknown>(Array.isArray(value) ? value : []);
    const name = JSON.stringify([field, op, not, ...values]);
    if (counted.has(name)) continue;
    counted.add(name);
    tests += op === "eq" || op === "in" ? Math.ceil(values.size / EQUALS_PER_TEST) : values.size;
  }
  return tests;
}

/** Returns the filters without duplicates, and each value of a filter once. */
function withoutDuplicates(filters: readonly Filter[]): readonly Filter[] {
  const distinct = filters.map((filter) => ({ ...filter, value: [...new Set(filter.value)] }));
  return [...new Map(distinct.map((filter) => [JSON.stringify(filter), filter])).values()];
}

/** The first bytes of `::ffff:0:0/96`. */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/**
 * Returns an IPv4 or IPv6 network, or an address as a network of its own, in the one form that Postgres reads as
 * `cidr` (no bit set after the prefix). Returns null for every other text, including those that some programs read as
 * octal (`010.0.0.0/8`) or fill up in the middle (`10.1/16`), because their author meant another network than the one
 * that would be found.
 */
export function toNetwork(text: string): string | null {
  const [address = ""] = text.split("/", 1);
  if (isIP(address) === 0) return null;
  if (ipaddr.isValidCIDR(text)) {
    const [address, bits] = ipaddr.parseCIDR(text);
    return writeNetwork(address.toByteArray(), bits);
  }
  if (!ipaddr.isValid(text)) return null;
  const bytes = ipaddr.parse(text).toByteArray();
  return writeNetwork(bytes, 8 * bytes.length);
}

/** An IPv4-mapped network is the IPv4 network, as its addresses are in the column `ip`. */
function writeNetwork(given: readonly number[], givenBits: number): string {
  const isMapped = givenBits >= 96 && given.slice(0, 12).every((byte, index) => byte === MAPPED[index]);
  const [bytes, bits] = isMapped ? [given.slice(12), givenBits - 96] : [given, givenBits];
  const masked = bytes.map((byte, index) => {
    const kept = Math.min(Math.max(bits - 8 * index, 0), 8);
    return byte & (0xff << (8 - kept));
  });
  // A byte array has no zone index (`fe80::1%eth0`), which Postgres would refuse.
  return `${ipaddr.fromByteArray(masked.map((byte) => byte & 0xff)).toNormalizedString()}/${bits}`;
}

/** Records this close together are searched in one span. */
const JOINED_MS = 60_000;

/** A span within one UTC day, epoch ms, both ends included. */
export interface DaySpan {
  readonly day: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Returns the spans that contain these moments (epoch ms, any order): few if they lie together, narrow if they do
 * not.
 */
export function planSpans(moments: readonly number[]): DaySpan[] {
  const spans: { day: string; fromMs: number; toMs: number }[] = [];
  for (const at of [...moments].sort((a, b) => a - b)) {
    const last = spans.at(-1);
    if (last !== undefined && at - last.toMs <= JOINED_MS && startOfDay(at) === startOfDay(last.fromMs))
      last.toMs = at;
    else spans.push({ day: toDay(at), fromMs: at, toMs: at });
  }
  return spans;
}
