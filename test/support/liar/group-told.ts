import type { Told } from "./bend-entries.ts";
import type { SearchRow } from "./true-platform.ts";

interface Grouping {
  readonly groupBy: readonly string[];
  readonly buckets: number;
  readonly from: number;
  readonly to: number;
}

interface ToldGroup {
  readonly told: readonly Told<SearchRow>[];
  readonly shown: { count: number; readonly [member: string]: unknown };
}

/** Returns groups in the platform's form, largest first, each with the lines that it counts. */
export function groupTold(told: readonly Told<SearchRow>[], grouping: Grouping): ToldGroup[] {
  const keyOf = ({ entry }: Told<SearchRow>) => grouping.groupBy.map((name) => entry.fields[name] ?? "");
  const groups = Map.groupBy(told, (line) => JSON.stringify(keyOf(line)));
  return [...groups]
    .sort(([key, lines], [otherKey, others]) => others.length - lines.length || (key < otherKey ? -1 : 1))
    .map(([key, lines]) => ({ told: lines, shown: showGroup(JSON.parse(key) as string[], lines, grouping) }));
}

function showGroup(key: readonly string[], lines: readonly Told<SearchRow>[], grouping: Grouping) {
  const { groupBy, buckets, from, to } = grouping;
  const times = lines.map(({ timestamp }) => timestamp);
  const sparkline = Array.from({ length: buckets }, () => 0);
  for (const at of times) {
    const bucket = Math.floor(((at - from) * buckets) / (to - from));
    sparkline[bucket] = (sparkline[bucket] ?? 0) + 1;
  }
  return {
    key: Object.fromEntries(groupBy.map((name, index) => [name, key[index] ?? ""])),
    count: lines.length,
    firstSeen: times.reduce((first, at) => Math.min(first, at), Number.POSITIVE_INFINITY),
    lastSeen: times.reduce((last, at) => Math.max(last, at), 0),
    context: describeGroup(lines),
    ...(buckets > 0 ? { sparkline } : {}),
  };
}

function describeGroup(lines: readonly Told<SearchRow>[]) {
  const texts = (name: string) => lines.map(({ entry }) => entry.fields[name] ?? "");
  const mostCommon = (name: string) => {
    const counts = [...Map.groupBy(texts(name), (text) => text)].map(
      ([text, all]) => [all.length, text] as const,
    );
    return counts.sort(([a, text], [b, other]) => b - a || (text < other ? -1 : 1))[0]?.[1] ?? "";
  };
  const acted = (action: string) => texts("action").filter((text) => text === action).length;
  const joined = (name: string) => [...new Set(texts(name))].sort().join(",");
  return {
    country: mostCommon("country"),
    asn: mostCommon("asn"),
    blocked: acted("block"),
    challenged: acted("challenge"),
    logged: acted("log"),
    features: joined("feature"),
    ruleIds: joined("ruleId"),
  };
}
