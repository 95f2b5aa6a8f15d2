import { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { to as copyTo } from "pg-copy-streams";
import { DAY_MS } from "#lib/units.ts";
import { nextMessage, startChild, stopChild } from "../child.ts";
import { LAUNCH } from "../launch-options.ts";
import type { ServedArchive, ServerMemory } from "./archive-server.ts";
import { type DataSet, SEARCH_NOW } from "./data-set.ts";
import { ASKED_ZONE } from "./day-events.ts";

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
  { postgres, folder }: DataSet,
  { repeats, onProgress }: { repeats: number; onProgress: (done: number, what: string) => void },
): Promise<TimedExport> {
  const args = [postgres.url, folder, String(SEARCH_NOW), String(ASKED_ZONE)];
  const child = startChild("search/archive-server.ts", args, LAUNCH);
  try {
    const { url } = await nextMessage<ServedArchive>(child);
    const measureMemory = () => {
      child.send("memory");
      return nextMessage<ServerMemory>(child);
    };
    const window = { from: EXPORTED_FROM, to: EXPORTED_FROM + DAY_MS };
    const rows = await exportByHttp(url, window);
    const archive: number[] = [];
    const copy: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) {
      onProgress(repeat / (repeats + 1), "export of a day");
      archive.push(await measureRate(() => exportByHttp(url, window), rows));
      copy.push(await measureRate(() => exportByCopy(postgres, window), rows));
    }
    const { peakBytes: afterDayBytes } = await measureMemory();
    onProgress(repeats / (repeats + 1), "export of a month");
    const monthRows = await exportByHttp(url, { from: SEARCH_NOW - LONG_DAYS * DAY_MS, to: SEARCH_NOW });
    const { peakBytes: afterMonthBytes } = await measureMemory();
    return { rows, archive, copy, afterDayBytes, afterMonthBytes, monthRows };
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
