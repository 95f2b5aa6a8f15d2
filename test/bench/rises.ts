import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { startEmulatorProcess } from "#app/open-platform.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { createFractions } from "../detection/support/histories.ts";
import { startServiceProcess } from "../faults/service-process.ts";
import { type Cluster, startCluster } from "./ingest/cluster.ts";
import { type Spread, toSpread } from "./spread.ts";
import { alignColumns } from "./tables.ts";

const FIRST_ZONE = 101;
/** Of the demo: its zones' events, and the pauses that it shortens. */
const EVENTS_PER_SECOND = 0.45;
const DEMO_SCHEDULE = {
  "poll-events": "*/10 * * * * *",
  "reconcile-counts": "0 * * * * *",
  "seal-windows": "0 * * * * *",
};
/** A zone is judged from a day of history on. */
const HISTORY_HOURS = 26;
const RULES = ["942100", "941100", "930130", "932100", "913100", "944150", "942200", "933150"];
const LONGEST_START_MS = 30 * MINUTE_MS;
const REST_MS = 3 * MINUTE_MS;
const RISES_MS = 4 * MINUTE_MS;
const RISE_MS = 5 * MINUTE_MS;
const DATABASE = "bench_rises";

export interface RisesBenchOptions {
  /** Each in a zone of its own. */
  readonly rises: number;
  /** The polls of a real platform instead of the demo's. */
  readonly isRealPlatform: boolean;
  /** Of the configuration file; null: no route in it. */
  readonly groupWait: string | null;
  /** A botnet on 25 rules in each zone instead of a rise of one rule. */
  readonly isFlood: boolean;
  readonly seed: number;
  readonly onProgress: (what: string) => void;
}

/** One rise, and how long after the event that reached the threshold its message came. */
export interface MeasuredRise {
  readonly zoneId: number;
  /** Null for a flood, whose delay counts from its first event. */
  readonly ruleId: string | null;
  readonly ratePerSecond: number;
  /** Null: no message came. */
  readonly delayMs: number | null;
  readonly messages: number;
}

export interface MeasuredRises {
  readonly rises: readonly MeasuredRise[];
  /** Requests per minute and zone, by operation. */
  readonly atRest: Readonly<Record<string, number>>;
  readonly whileRising: Readonly<Record<string, number>>;
}

const Message = z.looseObject({
  reason: z.string(),
  zoneId: z.number().nullable(),
  ruleId: z.string().nullable(),
  windowMinutes: z.number(),
  threshold: z.number(),
});
type Message = z.infer<typeof Message> & { readonly at: number };

/**
 * Starts the service over an emulator, waits until the history is copied, and lets one rule of each zone rise. An event of
 * this emulator is shown at its time, so the time of the event that reaches the threshold is that of its first showing.
 */
export async function benchRises(options: RisesBenchOptions): Promise<MeasuredRises> {
  const { rises, onProgress, isRealPlatform, groupWait } = options;
  const zoneIds = Array.from({ length: rises }, (_, i) => FIRST_ZONE + i);
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-rises-"));
  onProgress("starting Postgres and the emulator");
  const cluster = await startCluster();
  const flags = ["--zones", zoneIds.join(","), "--events-per-second", String(rises * EVENTS_PER_SECOND)];
  const history = ["--history-hours", String(HISTORY_HOURS), "--late-share", "0", "--no-state"];
  const emulator = await startEmulatorProcess([...flags, ...history], () => onProgress("the emulator ended"));
  const channel = await openChannel();
  const route = groupWait === null ? {} : { route: { channels: ["webhook"], group_wait: groupWait } };
  const config = path.join(folder, "longwatch.yaml");
  writeFileSync(config, JSON.stringify({ schedule: isRealPlatform ? {} : DEMO_SCHEDULE, ...route }));
  const service = startServiceProcess({
    DATABASE_URL: await cluster.createMigrated(DATABASE),
    EDGE_API_URL: emulator.url,
    EDGE_API_KEY: emulator.accessKey.reveal(),
    EDGE_SHIELD_ZONES: zoneIds.join(","),
    EDGE_REQUESTS_PER_SECOND: "1000",
    LONGWATCH_DATA_DIR: folder,
    LONGWATCH_CONFIG: config,
    LONGWATCH_WEBHOOK_URL: channel.url,
    LONGWATCH_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, "longwatch bench ").toString("base64")}`,
    LONGWATCH_ALLOW_PRIVATE_WEBHOOKS: "true",
  });
  const countRequests = async () => {
    const answer = await fetch(`${emulator.url}/_emulator/requests`);
    return z.object({ counts: z.record(z.string(), z.number()) }).parse(await answer.json()).counts;
  };
  const measureRequests = async (ms: number) => {
    const before = await countRequests();
    await delay(ms);
    const after = await countRequests();
    const perMinute = (name: string) =>
      (((after[name] ?? 0) - (before[name] ?? 0)) * MINUTE_MS) / ms / zoneIds.length;
    return Object.fromEntries(Object.keys(after).map((name) => [name, perMinute(name)]));
  };
  try {
    onProgress("copying the history");
    await untilCopied(cluster, zoneIds.length).catch((thrown: unknown) => {
      throw new Error(`the history was not copied: ${service.printed().slice(-2_000)}`, { cause: thrown });
    });
    onProgress("counting the requests at rest");
    const atRest = options.isFlood ? {} : await measureRequests(REST_MS);
    const drawn = drawRises(zoneIds, options);
    for (const rise of drawn) {
      const what = rise.ruleId === null ? "kind=botnet" : `rule=${rise.ruleId}`;
      const attack = `zone=${rise.zoneId},${what},start=${rise.startMs},duration=${RISE_MS / 1_000}s,rate=${rise.ratePerSecond}/s`;
      const body = JSON.stringify({ attack });
      await fetch(`${emulator.url}/_emulator/attacks`, { method: "POST", body });
    }
    onProgress("waiting for the messages");
    const whileRising = await measureRequests(RISES_MS + 2 * MINUTE_MS);
    const isOver = () => drawn.every((rise) => firstOf(channel.messages, rise) !== undefined);
    for (const endsAt = Date.now() + RISE_MS; !isOver() && Date.now() < endsAt; ) await delay(1_000);
    const measured = [];
    for (const rise of drawn) measured.push(await measureRise(cluster, channel.messages, rise));
    return { rises: measured, atRest, whileRising };
  } finally {
    service.child.kill("SIGTERM");
    await service.exited;
    channel.close();
    await emulator.stop();
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function openChannel() {
  const messages: Message[] = [];
  const server = createServer((request, response) => {
    const at = Date.now();
    void request.toArray().then((chunks) => {
      const { data } = JSON.parse(Buffer.concat(chunks).toString()) as { data: unknown };
      const message = Message.safeParse(data);
      if (message.success) messages.push({ ...message.data, at });
      response.end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { messages, url: `http://127.0.0.1:${port}/hook`, close: () => void server.close() };
}

/** Waits until every hour is searched and, as far as that takes no hour, sealed, and every minute is counted. */
async function untilCopied(cluster: Cluster, zones: number): Promise<void> {
  const wanted = zones * (HISTORY_HOURS - 1);
  const endsAt = Date.now() + LONGEST_START_MS;
  for (;;) {
    const [row] = await cluster.query<{ sealed: number; isStale: boolean }>(
      DATABASE,
      `select (select count(*)::int from coverage_windows where state = 'sealed') as sealed,
         exists (select from dirty_buckets) as "isStale"`,
    );
    if (row !== undefined && row.sealed >= wanted && !row.isStale) return;
    if (Date.now() >= endsAt) throw new Error(`${row?.sealed} of ${wanted} hours are sealed`);
    await delay(1_000);
  }
}

interface Rise {
  readonly zoneId: number;
  readonly ruleId: string | null;
  readonly startMs: number;
  readonly ratePerSecond: number;
}

/** Returns one rise per zone, from 0.3 to 12 events a second, that begin at any second of the time. */
function drawRises(
  zoneIds: readonly number[],
  { seed, isFlood }: Pick<RisesBenchOptions, "seed" | "isFlood">,
): Rise[] {
  const fraction = createFractions(seed);
  const from = Date.now() + 5_000;
  return zoneIds.map((zoneId, i) => ({
    zoneId,
    ruleId: isFlood ? null : (RULES[i % RULES.length] as string),
    startMs: from + Math.floor(fraction() * RISES_MS),
    ratePerSecond: isFlood ? 8 : Number((0.3 * 40 ** fraction()).toFixed(2)),
  }));
}

function isOf({ zoneId, ruleId, startMs }: Rise): (message: Message) => boolean {
  return (one) => one.zoneId === zoneId && (ruleId === null || one.ruleId === ruleId) && one.at >= startMs;
}

function firstOf(messages: readonly Message[], rise: Rise): Message | undefined {
  return messages.find(isOf(rise));
}

async function measureRise(
  cluster: Cluster,
  messages: readonly Message[],
  rise: Rise,
): Promise<MeasuredRise> {
  const { zoneId, ruleId, ratePerSecond } = rise;
  const first = firstOf(messages, rise);
  const measured = { zoneId, ruleId, ratePerSecond, messages: messages.filter(isOf(rise)).length };
  if (first === undefined) return { ...measured, delayMs: null };
  if (ruleId === null) return { ...measured, delayMs: first.at - rise.startMs };
  const rows = await cluster.query<{ at: number }>(
    DATABASE,
    `select (extract(epoch from occurred_at) * 1000)::float8 as at from waf_events
     where zone_id = ${zoneId} and rule_id = '${ruleId}'
       and occurred_at >= to_timestamp(${(rise.startMs - HOUR_MS) / 1_000}) order by occurred_at`,
  );
  const reachedAt = findReached(
    rows.map(({ at }) => at),
    first,
    rise.startMs,
  );
  return { ...measured, delayMs: reachedAt === null ? null : first.at - reachedAt };
}

/** Returns when a window of whole minutes and the running one first held as many events as the threshold. */
function findReached(
  times: readonly number[],
  { windowMinutes, threshold }: Pick<Message, "windowMinutes" | "threshold">,
  fromMs: number,
): number | null {
  let first = 0;
  for (const [i, at] of times.entries()) {
    const beginsAt = (Math.floor(at / MINUTE_MS) - windowMinutes + 1) * MINUTE_MS;
    while ((times[first] ?? at) < beginsAt) first += 1;
    if (at >= fromMs && i - first + 1 >= threshold) return at;
  }
  return null;
}

export function delaysOf({ rises }: MeasuredRises): Spread | null {
  return toSpread(rises.flatMap(({ delayMs }) => delayMs ?? []));
}

export function reportRises(measured: MeasuredRises, { isRealPlatform, isFlood }: RisesBenchOptions): string {
  const { rises, atRest, whileRising } = measured;
  const delays = delaysOf(measured);
  const seconds = (ms: number | undefined) => (ms === undefined ? "-" : `${(ms / 1_000).toFixed(1)} s`);
  const operations = Object.keys(whileRising).filter((name) => (whileRising[name] ?? 0) > 0);
  const searches = atRest["search-event-logs"] ?? 0;
  const planned = isRealPlatform ? 2 : 6;
  return [
    ...alignColumns([
      ["zone", "rule", "events/s", "delay", "messages"],
      ...rises.map(({ zoneId, ruleId, ratePerSecond, delayMs, messages }) => [
        String(zoneId),
        ruleId ?? "flood",
        String(ratePerSecond),
        delayMs === null ? "no message" : seconds(delayMs),
        String(messages),
      ]),
    ]),
    "",
    `from the ${isFlood ? "first" : "threshold's"} event to the message: median ${seconds(delays?.median)}, most ${seconds(delays?.max)}`,
    "",
    ...alignColumns([
      ["requests per zone and minute", "at rest", "while zones rise", "ratio"],
      ...operations.map((name) => {
        const [rest, rise] = [atRest[name] ?? 0, whileRising[name] ?? 0];
        return [name, rest.toFixed(2), rise.toFixed(2), rest === 0 ? "-" : (rise / rest).toFixed(2)];
      }),
    ]),
    ...(isFlood ? [] : [`searches at rest to polls of the schedule: ${(searches / planned).toFixed(2)}`]),
    "",
  ].join("\n");
}
