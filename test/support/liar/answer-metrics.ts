import { DAY_MS } from "#lib/units.ts";
import type { LiarRequest } from "./asked.ts";
import { bendEntries } from "./bend-entries.ts";
import { matchesFilters, splitFilters } from "./false-filters.ts";
import type { SearchRow } from "./true-platform.ts";

const KEPT_MS = 72 * 3_600_000;
const COUNTERS = ["totalTriggers", "blockedRequests", "loggedRequests", "challengedRequests"] as const;
const COUNTER_OF: Readonly<Record<string, (typeof COUNTERS)[number]>> = {
  block: "blockedRequests",
  log: "loggedRequests",
  challenge: "challengedRequests",
};

type Counters = Record<(typeof COUNTERS)[number], number>;

interface MetricsAnswer {
  readonly data: (Counters & { readonly overviewPastTwentyEightDays: Record<string, Counters> }) | null;
}

/**
 * Answers a rule's counters per day. The lies' changes of the last 72 hours are added to or subtracted from their
 * day.
 */
export async function answerMetrics(asked: LiarRequest): Promise<unknown> {
  const { truth, zone, lies, now, witness } = asked;
  const answer = (await truth.ask(asked.path)) as MetricsAnswer;
  const { data } = answer;
  if (data === null) return answer;
  const rule = decodeURIComponent(asked.path.split("/").at(-1) ?? "");
  const filters = [{ field: "ruleId", op: "eq", value: [rule] }];
  const { byPlatform, byLiar } = splitFilters(filters, lies);
  const window = { from: now - KEPT_MS, to: now + 1, now };
  const rows = await truth.loadRows(zone, { ...window, filters: byPlatform });
  const bent = bendEntries(rows, lies, window);
  const told = bent.told.filter(({ entry }) => matchesFilters(entry, byLiar));
  const changed = new Set(bent.changed);
  asked.tally(bent.changed);
  const isAllHidden = lies.some(({ kind, events }) => kind === "empty" && events === undefined);
  const days = structuredClone(data.overviewPastTwentyEightDays);
  if (isAllHidden) for (const day of Object.values(days)) clear(day);
  else {
    for (const row of changed) if (matchesFilters(row, byLiar)) add(days, row, row.timestamp, -1);
    for (const { of, entry, timestamp } of told) if (changed.has(of)) add(days, entry, timestamp, 1);
  }
  const grown = growDays(asked, days);
  const falseDays = new Set([...grown, ...bent.changed.map(({ timestamp }) => dayKeys(timestamp)[0])]);
  for (const { of } of isAllHidden ? [] : told)
    if (!falseDays.has(dayKeys(of.timestamp)[0])) witness.measure(of, now);
  const sums = Object.fromEntries(
    COUNTERS.map((name) => [name, Object.values(days).reduce((sum, day) => sum + day[name], 0)]),
  );
  return { ...answer, data: { ...data, ...sums, overviewPastTwentyEightDays: days } };
}

/** Adds to the days of each growing lie the number of reads so far. Returns these days. */
function growDays({ lies, path, now, note }: LiarRequest, days: Record<string, Counters>): string[] {
  return lies.flatMap((lie) => {
    if (lie.kind !== "grows") return [];
    const reads = (lie.reads.get(path) ?? 0) + 1;
    lie.reads.set(path, reads);
    const { from = now - KEPT_MS, to = now } = lie.events ?? {};
    const grown: string[] = [];
    for (let at = from - (from % DAY_MS); at < Math.min(to, now); at += DAY_MS) {
      const [key, otherKey] = dayKeys(at);
      const day = days[key] ?? days[otherKey];
      if (day === undefined) continue;
      day.totalTriggers += reads;
      day.loggedRequests += reads;
      grown.push(key);
    }
    note(lie, grown.length);
    return grown;
  });
}

function clear(day: Counters): void {
  for (const name of COUNTERS) day[name] = 0;
}

function add(days: Record<string, Counters>, { fields }: SearchRow, at: number, events: number): void {
  const key = dayKeys(at).find((name) => days[name] !== undefined);
  const day = key === undefined ? undefined : days[key];
  if (day === undefined) return;
  const counter = COUNTER_OF[fields["action"] ?? ""];
  day.totalTriggers = Math.max(0, day.totalTriggers + events);
  if (counter !== undefined) day[counter] = Math.max(0, day[counter] + events);
}

/** Returns a UTC day in the two forms that the emulator may write. */
function dayKeys(at: number): [string, string] {
  const day = new Date(at).toISOString().slice(0, 10);
  return [`${day.slice(8)}-${day.slice(5, 7)}-${day.slice(0, 4)}`, `${day}T00:00:00Z`];
}
