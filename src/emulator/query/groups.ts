import type { Dimension } from "#platform/contract/event-logs.ts";
import type { Columns } from "../zone-store.ts";
import type { Search } from "./request.ts";

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
