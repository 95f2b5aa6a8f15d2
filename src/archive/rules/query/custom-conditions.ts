/** Custom conditions: reads their searches, and tests single events by many of them at once, without SQL. */
import { isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";
import { formatDuration, formatWhole } from "#lib/format.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type CustomCondition, LONGEST_WITHIN_MINUTES, MOST_DISTINCT } from "#model/custom-condition.ts";
import { type Filter, type SearchColumn, toFieldName } from "#model/fields.ts";
import { toUrlPart } from "#model/record-parts.ts";
import type { SearchClause, TextTest } from "#model/search-condition.ts";
import { countTests, planSearch } from "./plan-search.ts";
import { FILTER_RULE, parseFilter, readSearch, splitMistake, toNativeFilter } from "./read-search.ts";
import { foldCase, matchesLiterals } from "./text-test.ts";

/** A condition as a person wrote it. */
export interface WrittenCondition extends Pick<CustomCondition, "name" | "filters" | "zoneIds" | "severity"> {
  readonly query?: string | undefined;
  /** Left out: 0, any event. */
  readonly moreThan?: number | undefined;
  readonly distinct?: string | undefined;
  /** True: the condition holds while no event comes. */
  readonly absent?: boolean | undefined;
  readonly withinMs: number;
}

export const DEFAULT_CONDITION = { withinMs: HOUR_MS, severity: "warning" } as const;

interface Mistake {
  readonly field: "filter" | "query" | "distinct" | "moreThan" | "within" | "absent";
  readonly value?: string;
  readonly rule: string;
}

/** Any span: the search language needs one, and a condition has none. */
const SPAN = { from: 0, to: 1 };
/** The most tests of an event. A free text is looked for in five columns. */
const MOST_TESTS = 100;
const TESTS_OF_TEXT = 5;
const METHOD_RULE =
  "must not test the method: it is in the event's record, which may arrive hours after the event. Test rule, path or url instead, or ask once with longwatch search";

/** Returns the condition, or everything that is wrong with it. */
export function readCondition(
  written: WrittenCondition,
): { readonly condition: CustomCondition } | { readonly mistakes: readonly Mistake[] } {
  const { name, filters, zoneIds, severity, query = "", absent = false, withinMs } = written;
  const distinct = written.distinct === undefined ? null : toFieldName(written.distinct);
  const moreThan = absent ? null : (written.moreThan ?? 0);
  const withinMinutes = withinMs / MINUTE_MS;
  const condition = { name, filters, query, zoneIds, moreThan, distinct, withinMinutes, severity };
  const mistakes = [...refuseCounting(written, condition)];
  const isWhole = Number.isInteger(withinMinutes) && withinMinutes >= 1;
  if (!isWhole || withinMinutes > LONGEST_WITHIN_MINUTES)
    mistakes.push({
      field: "within",
      value: formatDuration(withinMs),
      rule: "must be whole minutes, from 1m to 24h: the counts of each minute are kept for so long",
    });
  const read = filters.map(readFilter);
  mistakes.push(...read.flatMap((one) => one.mistakes));
  const tests = countTests(read.flatMap((one) => one.filters)) + (query === "" ? 0 : TESTS_OF_TEXT);
  if (tests > MOST_TESTS)
    mistakes.push({
      field: "filter",
      rule: `must cost at most ${MOST_TESTS} tests of each event, but would cost ${formatWhole(tests)}`,
    });
  if (mistakes.length > 0) return { mistakes };
  if (!absent && clausesOf(condition).length === 0)
    return { mistakes: [{ field: "filter", rule: "must leave some events out: this matches every event" }] };
  return { condition };
}

function refuseCounting({ distinct, moreThan, absent = false }: WrittenCondition, read: CustomCondition) {
  const mistakes: Mistake[] = [];
  if (absent && (moreThan !== undefined || distinct !== undefined))
    mistakes.push({ field: "absent", rule: "must be alone: an absent event has no count" });
  if (distinct === undefined || absent) return mistakes;
  const value = JSON.stringify(distinct);
  if (read.distinct === null || read.distinct === "method" || read.distinct === "zone")
    mistakes.push({ field: "distinct", value, rule: "must be a field of events, but not method or zone" });
  if ((read.moreThan ?? 0) < 1 || (read.moreThan ?? 0) > MOST_DISTINCT)
    mistakes.push({
      field: "moreThan",
      value: formatWhole(read.moreThan ?? 0),
      rule: `must be from 1 to ${formatWhole(MOST_DISTINCT)} with distinct: the different values of each minute are kept`,
    });
  return mistakes;
}

interface ReadFilter {
  readonly filters: readonly Filter[];
  readonly mistakes: readonly Mistake[];
}

function readFilter(text: string): ReadFilter {
  const wrong = (...rules: readonly string[]): ReadFilter => ({
    filters: [],
    mistakes: rules.map((rule) => ({ field: "filter", value: JSON.stringify(text), rule })),
  });
  const written = parseFilter(text);
  if (written === null) return wrong(`must be ${FILTER_RULE}`);
  const read = readSearch({ ...SPAN, filters: [toNativeFilter(written)] }, "export", "native");
  if ("mistakes" in read)
    return wrong(
      ...Object.entries(read.mistakes).flatMap(([field, texts]) =>
        texts.map((one) => `${field.replace("filters[0].", "")} ${splitMistake(field, one).rule}`),
      ),
    );
  const { filters } = read.search;
  return filters.some(({ field }) => field === "method") ? wrong(METHOD_RULE) : { filters, mistakes: [] };
}

/** Returns the tests of the events of a condition that `readCondition` has accepted. */
export function clausesOf({ filters, query }: Pick<CustomCondition, "filters" | "query">): SearchClause[] {
  const flat = { groupBy: [], buckets: 0, page: 0, pageSize: 1 };
  const read = filters.flatMap((text) => readFilter(text).filters);
  return [...planSearch({ ...SPAN, ...flat, query, filters: read }).clauses];
}

/** The columns of an event that the clauses of a search can test, but those that are parts of another one. */
export type MatchedEvent = Readonly<Record<Exclude<SearchColumn, "host" | "path">, string | null>>;

/** An event of which each text is prepared once, however many tests read it. */
export interface EventTexts {
  readonly of: (column: SearchColumn) => string;
  readonly foldedOf: (column: SearchColumn) => string;
  /** The networks that its address stands for: of the text as it is, and of the spelling that is stored today. */
  readonly networks: () => readonly StoredNetwork[];
}

type Test = (event: EventTexts) => boolean;

/** Returns the texts of an event. A text that is not known counts as empty, as in every search. */
export function textsOf(event: MatchedEvent): EventTexts {
  const texts: Partial<Record<SearchColumn, string>> = {};
  const folded: Partial<Record<SearchColumn, string>> = {};
  const of = (column: SearchColumn) =>
    (texts[column] ??=
      column === "host" || column === "path" ? toUrlPart(column, event.url ?? "") : (event[column] ?? ""));
  let networks: readonly StoredNetwork[] | undefined;
  return {
    of,
    foldedOf: (column) => (folded[column] ??= foldCase(of(column))),
    networks: () => (networks ??= readNetworks(of("ip"))),
  };
}

/** The clauses of a search, and the key that the matcher returns for it. */
interface Selection<Key> {
  readonly key: Key;
  readonly clauses: readonly SearchClause[];
}

/**
 * Returns a function that returns the keys of the searches that find an event. A clause that several searches have is tested once
 * for an event, and searches for exact values of a column are looked up by the event's value: that makes a thousand searches cheap.
 */
export function createMatcher<Key>(selections: readonly Selection<Key>[]): (event: EventTexts) => Key[] {
  const numbers = new Map<string, number>();
  const tests: Test[] = [];
  const number = (clause: SearchClause) => {
    const name = JSON.stringify(clause);
    const known = numbers.get(name);
    if (known !== undefined) return known;
    numbers.set(name, tests.length);
    return tests.push(toClauseTest(clause)) - 1;
  };
  interface Planned {
    readonly key: Key;
    readonly clauses: readonly number[];
  }
  const always: Planned[] = [];
  const byValue = new Map<SearchColumn, Map<string, Planned[]>>();
  for (const { key, clauses } of selections) {
    const cheapFirst = clauses.toSorted((a, b) => costOf(a) - costOf(b));
    const [first] = cheapFirst;
    const exact = first === undefined ? null : toExact(first);
    const planned = { key, clauses: (exact === null ? cheapFirst : cheapFirst.slice(1)).map(number) };
    if (exact === null) {
      always.push(planned);
      continue;
    }
    const ofColumn = byValue.get(exact.column) ?? new Map<string, Planned[]>();
    byValue.set(exact.column, ofColumn);
    for (const text of new Set(exact.texts)) ofColumn.set(text, [...(ofColumn.get(text) ?? []), planned]);
  }
  /** 0: not tested yet for this event, 1: it does not hold, 2: it does. */
  const known = new Uint8Array(tests.length);
  return (event) => {
    known.fill(0);
    const found: Key[] = [];
    const passes = (clause: number) => {
      if (known[clause] === 0) known[clause] = tests[clause]?.(event) === true ? 2 : 1;
      return known[clause] === 2;
    };
    const takeAll = (planned: readonly Planned[]) => {
      for (const { key, clauses } of planned) if (clauses.every(passes)) found.push(key);
    };
    takeAll(always);
    for (const [column, ofColumn] of byValue) takeAll(ofColumn.get(event.of(column)) ?? []);
    return found;
  };
}

/** Returns the exact values of a clause about one column; null for any other. An address has further spellings. */
function toExact({ columns, tests, isNegated }: SearchClause) {
  const [column, ...others] = columns;
  if (column === undefined || column === "ip" || others.length > 0 || isNegated === true) return null;
  if (!tests.every((test) => test.kind === "equals")) return null;
  return { column, texts: tests.flatMap(({ texts }) => texts) };
}

/** Exact values of one column first, then those of several, then parts of a text, then networks. */
function costOf(clause: SearchClause): number {
  if (toExact(clause) !== null) return 0;
  const ofTest = { anything: 0, equals: 1, like: 5, likeAny: 10, within: 20, withinAny: 20 };
  return clause.columns.length * clause.tests.reduce((sum, { kind }) => sum + ofTest[kind], 1);
}

/** The same as `toCondition` in SQL. */
function toClauseTest({ columns, tests, isNegated }: SearchClause): Test {
  const all = columns.flatMap((column) => tests.map((test) => toTest(column, test)));
  const [only, ...others] = all;
  const passes: Test =
    only !== undefined && others.length === 0 ? only : (event) => all.some((test) => test(event));
  return isNegated === true ? (event) => !passes(event) : passes;
}

function toTest(column: SearchColumn, test: TextTest): Test {
  switch (test.kind) {
    case "anything":
      return () => true;
    case "equals": {
      const texts = new Set(test.texts);
      if (column !== "ip") return (event) => texts.has(event.of(column));
      return (event) => {
        const text = event.of(column);
        return texts.has(text) || (isOlderSpelling(text) && texts.has(toPlain(text)));
      };
    }
    case "within":
    case "withinAny": {
      const networks = test.networks.map((network): StoredNetwork => {
        const [address = "", bits] = network.split("/");
        return { bytes: ipaddr.parse(address).toByteArray(), bits: Number(bits) };
      });
      return (event) =>
        event.networks().some((inner) => networks.some((network) => isInside(inner, network)));
    }
    case "like":
      return (event) => matchesLiterals(test, event.foldedOf(column));
    case "likeAny":
      return (event) => test.likes.some((like) => matchesLiterals(like, event.foldedOf(column)));
    default:
      return test satisfies never;
  }
}

/** An address that was stored before addresses had one spelling: with a port, brackets, a list or in the mapped form. */
function isOlderSpelling(text: string): boolean {
  return text.includes(",") || (text.includes(":") && (text.includes(".") || text.includes("[")));
}

function toPlain(text: string): string {
  const [first = ""] = text.split(",", 1);
  const shown = first.replaceAll(/^ +| +$/g, "").toLowerCase();
  return shown.replace(/^\[?(?:::ffff:)?([0-9.]+|[0-9a-f:]+)(?:\]|\]:[0-9]+|:[0-9]+)?$/, "$1");
}

interface StoredNetwork {
  readonly bytes: readonly number[];
  readonly bits: number;
}

const IPV4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3}|\*)\.(\d{1,3}|\*)$/;
const MASKED_IPV6 = /^([0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6}):?(?::\*)+$/i;

/** Returns the network of an address, whole or masked, as `event_network` of Postgres does; null for any other text. */
function readStored(text: string): StoredNetwork | null {
  const [, ...octets] = IPV4.exec(text) ?? [];
  if (octets.length > 0) {
    const shown = octets.filter((octet) => octet !== "*");
    // A star may hide the last octets only.
    if (octets[2] === "*" && octets[3] !== "*") return null;
    if (shown.some((octet) => Number(octet) > 255 || String(Number(octet)) !== octet)) return null;
    return { bytes: octets.map((octet) => (octet === "*" ? 0 : Number(octet))), bits: 8 * shown.length };
  }
  if (!text.includes(":")) return null;
  const groups = MASKED_IPV6.exec(text)?.[1]?.split(":");
  if (groups !== undefined) {
    const bytes = groups.map((group) => Number.parseInt(group, 16)).flatMap((one) => [one >> 8, one & 0xff]);
    return { bytes: [...bytes, ...Array<number>(16 - bytes.length).fill(0)], bits: 16 * groups.length };
  }
  const isDotted = text.includes(".") && !/^::(?:ffff:)?[\d.]+$/i.test(text);
  if (text.includes("%") || isDotted || !isIPv6(text)) return null;
  return { bytes: ipaddr.parse(text).toByteArray(), bits: 128 };
}

function readNetworks(text: string): StoredNetwork[] {
  const spellings = isOlderSpelling(text) ? [text, toPlain(text)] : [text];
  return spellings.flatMap((one) => readStored(one) ?? []);
}

function isInside(inner: StoredNetwork, { bytes, bits }: StoredNetwork): boolean {
  if (inner.bytes.length !== bytes.length || inner.bits < bits) return false;
  const whole = bits >> 3;
  for (let index = 0; index < whole; index += 1) if (inner.bytes[index] !== bytes[index]) return false;
  const rest = 0xff & (0xff << (8 - (bits & 7)));
  return (bits & 7) === 0 || (((inner.bytes[whole] ?? 0) ^ (bytes[whole] ?? 0)) & rest) === 0;
}
