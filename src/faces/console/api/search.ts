/** The queries of the explorer, and the record of an event. */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { classifyAction } from "#model/action-class.ts";
import type { FieldName } from "#model/fields.ts";
import { readHeaders, readMatch } from "#model/record-parts.ts";
import { type EventFilter, FILTER_KINDS } from "../state/filters.ts";
import { bucketWidth } from "../state/span.ts";
import type { Zone } from "../state/zones.ts";
import { ask, type Input, type Output } from "./ask.ts";
import { askZones, type OfZones } from "./of-zones.ts";

/** Events that are shown: the same for the histogram, the top lists, the table and the export. */
export interface EventScope {
  readonly zones: readonly Zone[];
  readonly fromMs: number;
  readonly toMs: number;
  readonly query: string;
  readonly filters: readonly EventFilter[];
}

/** Its record is null if it has not come yet or the reader may not see it. */
export type EventRow = SearchAnswer["rows"][number] & { readonly zoneId: number };

type Answer = Output<"events.search">;
/** The page asks for no other format of rows. */
type SearchAnswer = Omit<Answer, "rows"> & {
  readonly rows: readonly Extract<Answer["rows"][number], { readonly logId: string }>[];
};

type SearchBody = Omit<Input<"events.search">, "zone">;

/** The body of a search or an export. Values of one field are alternatives; exclusions are not. */
export function toBody({ fromMs, toMs, query, filters }: Omit<EventScope, "zones">): SearchBody {
  const alike = Map.groupBy(filters, ({ kind, field }) => `${kind} ${field}`);
  const clauses = [...alike.values()].flatMap((same) => {
    const value = same.map((filter) => filter.value);
    return same.slice(0, 1).map(({ kind, field }) => {
      const { op, isNot } = FILTER_KINDS[kind];
      const isIn = op === "eq" && value.length > 1;
      return { field, op: isIn ? ("in" as const) : op, value, ...(isNot ? { not: true } : {}) };
    });
  });
  return {
    from: Math.floor(fromMs),
    to: Math.ceil(toMs),
    ...(query === "" ? {} : { query }),
    ...(clauses.length === 0 ? {} : { filters: clauses }),
  };
}

/** The service works on few searches of one key at a time, so the page asks no more than these at once. */
const AT_ONCE = 3;
let running = 0;
const waiting: (() => void)[] = [];
const isFull = () => running >= AT_ONCE;

async function takeTurn<Answer>(signal: AbortSignal, work: () => Promise<Answer>): Promise<Answer> {
  // Another search may take the place before this one wakes up.
  for (; isFull(); ) {
    await new Promise<void>((resolve) => waiting.push(resolve));
    if (signal.aborted) waiting.shift()?.();
    signal.throwIfAborted();
  }
  running += 1;
  try {
    return await work();
  } finally {
    running -= 1;
    waiting.shift()?.();
  }
}

export function eventsPath({ zones }: Pick<EventScope, "zones">): string {
  return `/api/v1/zones/${zones.map(({ id }) => id).join(",")}/events`;
}

function search(scope: EventScope, asked: Partial<SearchBody>, signal: AbortSignal) {
  const body = { ...toBody(scope), ...asked };
  const askOne = ({ id }: Zone) =>
    takeTurn(signal, () => ask("events.search", { zone: id, ...body }, { signal }) as Promise<SearchAnswer>);
  return askZones(scope.zones, askOne, signal);
}

function keyOf({ zones, ...scope }: EventScope) {
  return [zones.map(({ id }) => id), scope] as const;
}

/** Searches the zones of a scope and passes their answers to `make`. */
function useSearch<Made>(
  scope: EventScope,
  asked: Partial<SearchBody>,
  make: (found: OfZones<SearchAnswer>) => Made,
  isWanted = true,
) {
  return useQuery({
    queryKey: ["search", asked, ...keyOf(scope)],
    queryFn: async ({ signal }) => make(await search(scope, asked, signal)),
    enabled: isWanted && scope.zones.length > 0,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}

function addTo(sums: number[], values: readonly number[]): void {
  for (const [index, value] of values.entries()) sums[index] = (sums[index] ?? 0) + value;
}

/** Counts over the span by action. */
export function useHistogram(scope: EventScope) {
  const spanMs = scope.toMs - scope.fromMs;
  // The buckets divide the span itself, so that their sum is the count of exactly the events that the page shows.
  const buckets = Math.max(1, Math.round(spanMs / bucketWidth(spanMs)));
  const firstMs = Math.floor(scope.fromMs);
  const widthMs = (Math.ceil(scope.toMs) - firstMs) / buckets;
  return useSearch(scope, { groupBy: ["action"], buckets, pageSize: 50 }, ({ answers, failed }) => {
    const zeros = () => Array.from({ length: buckets }, () => 0);
    const counts = { blocked: zeros(), challenged: zeros(), logged: zeros(), other: zeros() };
    const groups = answers.flatMap(({ answer }) => answer.groups);
    for (const { key, sparkline = [] } of groups) addTo(counts[classifyAction(key.action ?? "")], sparkline);
    const timesMs = Array.from({ length: buckets }, (_, index) => firstMs + index * widthMs);
    return { widthMs, timesMs, counts, total: groups.reduce((sum, { count }) => sum + count, 0), failed };
  });
}

const TOP_LIMIT = 50;
const TOP_BUCKETS = 24;

/** The most frequent values of one field. The number of values is a lower bound with several zones. */
export function useTopList(scope: EventScope, field: FieldName) {
  const asked = { groupBy: [field], buckets: TOP_BUCKETS, pageSize: TOP_LIMIT };
  return useSearch(scope, asked, ({ answers }) => {
    const groups = new Map<string, { value: string; count: number; sparkline: number[] }>();
    for (const { key, count, sparkline = [] } of answers.flatMap(({ answer }) => answer.groups)) {
      const value = key[field] ?? "";
      const group = groups.get(value) ?? { value, count: 0, sparkline: [] };
      group.count += count;
      addTo(group.sparkline, sparkline);
      groups.set(value, group);
    }
    const sorted = [...groups.values()].sort((one, other) => other.count - one.count);
    return {
      groups: sorted.slice(0, TOP_LIMIT),
      values: Math.max(sorted.length, ...answers.map(({ answer }) => answer.total)),
    };
  });
}

/** The first page is small, because a reader waits for it. A row of a larger page costs the service half as much. */
const FIRST_PAGE_SIZE = 100;
const PAGE_SIZE = 300;
const MAX_PAGE_SIZE = 500;

interface RowPage {
  readonly rows: readonly EventRow[];
  /** The end of the next, older page; null if there is none. */
  readonly next: number | null;
  readonly failed: OfZones<unknown>["failed"];
}

/**
 * The events, newest first, page after page. A page ends at a time instead of a number of rows, so the hundredth page
 * costs as much as the first, and zones can be merged.
 */
export function useEventRows(scope: EventScope) {
  return useInfiniteQuery({
    queryKey: ["search", "rows", ...keyOf(scope)],
    queryFn: async ({ pageParam, signal }): Promise<RowPage> => {
      const toMs = pageParam ?? scope.toMs;
      const first = pageParam === null ? FIRST_PAGE_SIZE : PAGE_SIZE;
      for (let pageSize = first; ; pageSize = Math.min(pageSize * 5, MAX_PAGE_SIZE)) {
        const found = await search({ ...scope, toMs }, { pageSize }, signal);
        const page = cutPage(found, pageSize);
        if (page.rows.length > 0 || page.next === null) return page;
        // More rows of one millisecond than a page holds: the rest of that millisecond is passed over.
        if (pageSize === MAX_PAGE_SIZE)
          return { ...cutPage(found, Number.POSITIVE_INFINITY), next: page.next - 1 };
      }
    },
    initialPageParam: null as number | null,
    getNextPageParam: ({ next }) => next,
    enabled: scope.zones.length > 0,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
}

/** Keeps the rows that no zone can have left out: those after the last row of every zone that has more. */
function cutPage({ answers, failed }: OfZones<SearchAnswer>, pageSize: number): RowPage {
  const rows = answers.flatMap(({ zone, answer }) => answer.rows.map((row) => ({ ...row, zoneId: zone.id })));
  const ends = answers.flatMap(({ answer }) => {
    const last = answer.rows.at(-1);
    return last !== undefined && answer.rows.length >= pageSize ? [last.timestamp] : [];
  });
  const end = ends.length === 0 ? null : Math.max(...ends);
  const kept = end === null ? rows : rows.filter(({ timestamp }) => timestamp > end);
  kept.sort((one, other) => other.timestamp - one.timestamp);
  return { rows: kept, next: end === null ? null : end + 1, failed };
}

/** How many events match; for the hint of an empty answer and the count of new events. */
export const useEventCount = (scope: EventScope, isWanted: boolean) =>
  useSearch(
    scope,
    { pageSize: 1 },
    ({ answers }) => answers.reduce((sum, { answer }) => sum + answer.total, 0),
    isWanted,
  );

interface DecodedRecord {
  readonly message: string;
  readonly body: string;
  /** The text that the rule found, and where. */
  readonly matched: string;
  readonly matchedIn: string;
  readonly headers: readonly (readonly [string, string])[];
  /** Every other member, so that nothing of the record is hidden. */
  readonly others: readonly (readonly [string, string])[];
}

const SHOWN = new Set(["Message", "Url", "UrlEncodedBody", "Headers", "TriggerMatch"]);

/** Reads a record of the platform. Every member may be missing or of another type: records are kept as they came. */
export function readRecord(log: Record<string, unknown> | null): DecodedRecord {
  const record = log ?? {};
  const match = readMatch(record["TriggerMatch"]);
  return {
    message: toText(record["Message"]),
    body: toText(record["UrlEncodedBody"]),
    matched: toText(match?.value),
    matchedIn: toText(match?.name),
    headers: readHeaders(record["Headers"]).map(({ name, value }) => [toText(name), toText(value)]),
    others: Object.entries(record).flatMap(([name, value]) =>
      // If there are several matches, only the first one is shown apart. The list then stays among the other members.
      SHOWN.has(name) && (name !== "TriggerMatch" || !Array.isArray(value) || value.length < 2)
        ? []
        : [[name, toText(value)] as const],
    ),
  };
}

function toText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Decodes the percent signs of an address as far as they are valid: attacks often are not. */
export function decodeUrl(url: string): string {
  return url.replaceAll(/(?:%[0-9a-f]{2})+/gi, (encoded) => {
    try {
      return decodeURIComponent(encoded);
    } catch {
      return encoded;
    }
  });
}
