import { randomUUID } from "node:crypto";
import { DAY_MS } from "#lib/units.ts";
import { nextMessage, startChild, stopChild } from "../child.ts";
import { LAUNCH } from "../launch-options.ts";
import type { ServedArchive } from "./archive-server.ts";
import { type DataSet, SEARCH_NOW } from "./data-set.ts";
import { ALL_ZONES } from "./day-events.ts";

/** Finds of one text in all zones over HTTP, ms, repeat by repeat. */
export interface TimedFind {
  readonly name: string;
  /** Days back that are searched. */
  readonly days: number;
  readonly ms: readonly number[];
}

/** An event that is found by its id, and a text that no event has: the ids of all days are read, and then the paths. */
export async function timeFinds(
  { postgres, folder, duck }: DataSet,
  { repeats, onProgress }: { repeats: number; onProgress: (done: number, what: string) => void },
): Promise<TimedFind[]> {
  const args = [postgres.url, folder, String(SEARCH_NOW), ...ALL_ZONES.map(String)];
  const child = startChild("search/archive-server.ts", args, LAUNCH);
  const idOf = async (daysAgo: number) => {
    const day = new Date(SEARCH_NOW - daysAgo * DAY_MS).toISOString().slice(0, 10);
    const [row] = await duck.query(
      `select log_id from waf_events where occurred_at >= '${day}' order by occurred_at limit 1`,
    );
    return String(row?.["log_id"]);
  };
  const unknown = async () => randomUUID();
  const finds: [name: string, days: number, pick: () => Promise<string>, isThere: boolean][] = [
    ["a log id, found within 7 days", 7, () => idOf(5), true],
    ["a text of no event, 7 days", 7, unknown, false],
    ["a log id, found within 90 days", 90, () => idOf(80), true],
    ["a text of no event, 90 days", 90, unknown, false],
  ];
  try {
    const { url } = await nextMessage<ServedArchive>(child);
    const timed: TimedFind[] = [];
    for (const [index, [name, days, pick, isThere]] of finds.entries()) {
      onProgress(index / finds.length, "find");
      const ms: number[] = [];
      // The first one is not counted: it starts DuckDB's process and compares the files with their hashes.
      for (let turn = 0; turn <= repeats; turn++) {
        const text = await pick();
        const startedAt = performance.now();
        const { total } = await find(url, text, days);
        if (turn > 0) ms.push(performance.now() - startedAt);
        if (total > 0 !== isThere) throw new Error(`${name}: found ${total} events`);
      }
      timed.push({ name, days, ms });
    }
    return timed;
  } finally {
    await stopChild(child);
  }
}

async function find(url: string, text: string, days: number): Promise<{ readonly total: number }> {
  const asked = new URLSearchParams({ text, from: String(SEARCH_NOW - days * DAY_MS) });
  const response = await fetch(`${url}/api/v1/find?${asked}`, { headers: { AccessKey: "bench" } });
  if (!response.ok) throw new Error(`find: ${response.status} ${await response.text()}`);
  return (await response.json()) as { total: number };
}
