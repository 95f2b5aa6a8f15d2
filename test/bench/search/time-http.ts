import { randomUUID } from "node:crypto";
import { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { to as copyTo } from "pg-copy-streams";
import { DAY_MS } from "#lib/units.ts";
import { nextMessage, startChild, stopChild } from "../child.ts";
import { LAUNCH } from "../launch-options.ts";
import type { ServedArchive, ServerMemory } from "./archive-server.ts";
import { type DataSet, SEARCH_NOW } from "./data-set.ts";
import { ALL_ZONES, ASKED_ZONE } from "./day-events.ts";

/** A whole archive day, a few days back, that Postgres still has. */
const EXPORTED_FROM = SEARCH_NOW - (SEARCH_NOW % DAY_MS) - 5 * DAY_MS;
/** The export that memory is looked at during: a month. */
const LONG_DAYS = 30;

/** Exports of the same day, events per second, repeat by repeat, and the service's memory. */
export interface TimedExport {
  readonly rows: number;
  readonly archive: readonly number[];
  readonly copy: readonly number[];
  /** Resident memory of the serving process after the day's exports and its peak after one of a month. */
  readonly afterDayBytes: number;
  readonly afterMonthBytes: number;
  readonly monthRows: number;
}

/** A day as CSV: through the service's HTTP, and by Postgres's COPY of the same columns in the same order. */
export async function timeExport(
  set: DataSet,
  { repeats, onProgress }: { repeats: number; onProgress: (done: number, what: string) => void },
): Promise<TimedExport> {
  return withServer(set, [ASKED_ZONE], async ({ url, readMemory }) => {
    const window = { from: EXPORTED_FROM, to: EXPORTED_FROM + DAY_MS };
    const rows = await exportByHttp(url, window);
    const archive: number[] = [];
    const copy: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) {
      onProgress(repeat / (repeats + 1), "export of a day");
      archive.push(await measureRate(() => exportByHttp(url, window), rows));
      copy.push(await measureRate(() => exportByCopy(set.postgres, window), rows));
    }
    const { peakBytes: afterDayBytes } = await readMemory();
    onProgress(repeats / (repeats + 1), "export of a month");
    const monthRows = await exportByHttp(url, { from: SEARCH_NOW - LONG_DAYS * DAY_MS, to: SEARCH_NOW });
    const { peakBytes: afterMonthBytes } = await readMemory();
    return { rows, archive, copy, afterDayBytes, afterMonthBytes, monthRows };
  });
}

/** Serves these zones in a process of its own while `use` runs. */
async function withServer<T>(
  { postgres, folder }: DataSet,
  zoneIds: readonly number[],
  use: (server: { url: string; readMemory: () => Promise<ServerMemory> }) => Promise<T>,
): Promise<T> {
  const args = [postgres.url, folder, String(SEARCH_NOW), ...zoneIds.map(String)];
  const child = startChild("search/archive-server.ts", args, LAUNCH);
  try {
    const { url } = await nextMessage<ServedArchive>(child);
    const readMemory = () => {
      child.send("memory");
      return nextMessage<ServerMemory>(child);
    };
    return await use({ url, readMemory });
  } finally {
    await stopChild(child);
  }
}

interface Window {
  readonly from: number;
  readonly to: number;
}

async function measureRate(run: () => Promise<number>, wanted: number): Promise<number> {
  const startedAt = performance.now();
  const rows = await run();
  if (rows !== wanted) throw new Error(`an export of ${rows} events where ${wanted} were expected`);
  return (rows / (performance.now() - startedAt)) * 1_000;
}

/** The number of lines after the header. */
async function exportByHttp(url: string, window: Window): Promise<number> {
  const response = await fetch(`${url}/shield/event-logs/${ASKED_ZONE}/export`, {
    method: "POST",
    // COPY compresses nothing. Without the header, fetch asks for br.
    headers: { "content-type": "application/json", AccessKey: "bench", "accept-encoding": "identity" },
    body: JSON.stringify(window),
  });
  if (!response.ok || response.body === null)
    throw new Error(`export: ${response.status} ${await response.text()}`);
  const counter = createLineCounter();
  await pipeline(response.body, counter.sink);
  return counter.lines() - 1;
}

async function exportByCopy({ database }: DataSet["postgres"], { from, to }: Window): Promise<number> {
  const client = await database.pool.connect();
  try {
    const [start, end] = [from, to].map((ms) => new Date(ms).toISOString());
    const counter = createLineCounter();
    await pipeline(
      client.query(
        copyTo(`copy (select (extract(epoch from occurred_at) * 1000)::bigint, log_id, feature, rule_id, ip, ja4, ua, url,
          asn, country, action from waf_events where zone_id = ${ASKED_ZONE} and occurred_at >= '${start}'
          and occurred_at < '${end}' order by occurred_at desc, log_id desc) to stdout (format csv)`),
      ),
      counter.sink,
    );
    return counter.lines();
  } finally {
    client.release();
  }
}

function createLineCounter() {
  let count = 0;
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) count++;
      done();
    },
  });
  return { sink, lines: () => count };
}

/** Finds of one text in all zones over HTTP, ms, repeat by repeat. */
export interface TimedFind {
  readonly name: string;
  /** Days back that are searched. */
  readonly days: number;
  readonly ms: readonly number[];
}

/** An event that is found by its id, and a text that no event has: the ids of all days are read, and then the paths. */
export async function timeFinds(
  set: DataSet,
  { repeats, onProgress }: { repeats: number; onProgress: (done: number, what: string) => void },
): Promise<TimedFind[]> {
  const idOf = async (daysAgo: number) => {
    const day = new Date(SEARCH_NOW - daysAgo * DAY_MS).toISOString().slice(0, 10);
    const [row] = await set.duck.query(
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
  return withServer(set, ALL_ZONES, async ({ url }) => {
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
  });
}

async function find(url: string, text: string, days: number): Promise<{ readonly total: number }> {
  const asked = new URLSearchParams({ text, from: String(SEARCH_NOW - days * DAY_MS) });
  const response = await fetch(`${url}/api/v1/find?${asked}`, { headers: { AccessKey: "bench" } });
  if (!response.ok) throw new Error(`find: ${response.status} ${await response.text()}`);
  return (await response.json()) as { total: number };
}
