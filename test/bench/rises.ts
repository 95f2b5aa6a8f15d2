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
import { listTree, readCpuMs } from "./process-tree.ts";
import { findReached, type RiseEvent, type RiseParts, splitDelay } from "./rises/delay-parts.ts";
import { followSearches, type SearchMoment } from "./rises/follow-searches.ts";
import { toSpread } from "./spread.ts";
import { alignColumns } from "./tables.ts";

const FIRST_ZONE = 101;
/** The pauses that the demo shortens. */
const DEMO_SCHEDULE = {
  "poll-events": "*/10 * * * * *",
  "reconcile-counts": "0 * * * * *",
  "seal-windows": "0 * * * * *",
};
const RULES = ["942100", "941100", "930130", "932100", "913100", "944150", "942200", "933150"];
const LONGEST_START_MS = 30 * MINUTE_MS;
/** Until the jobs after the copy have ended. */
const SETTLE_MS = 30_000;
const MOST_SETTLES = 20;
const REST_MS = 3 * MINUTE_MS;
const RISES_MS = 4 * MINUTE_MS;
const RISE_MS = 5 * MINUTE_MS;
const DATABASE = "bench_rises";

/** Beyond the rises of rules, whose rates are drawn. */
const KINDS = ["rule", "scanner-60", "scanner-240", "botnet-60"] as const;
type RiseKind = (typeof KINDS)[number] | "flood";
const SCRIPTS = {
  "scanner-60": { kind: "scanner", ratePerSecond: 1 },
  "scanner-240": { kind: "scanner", ratePerSecond: 4 },
  "botnet-60": { kind: "botnet", ratePerSecond: 1 },
  flood: { kind: "botnet", ratePerSecond: 8 },
} as const;

export interface RisesBenchOptions {
  /** Each in a zone of its own. */
  readonly rises: number;
  /** The polls of a real platform instead of the demo's. */
  readonly isRealPlatform: boolean;
  /** Of the configuration file; null: no route in it. */
  readonly groupWait: string | null;
  /** A botnet on 25 rules in each zone instead of the four kinds. */
  readonly isFlood: boolean;
  /** Measures the requests and the CPU at rest only. */
  readonly isRestOnly: boolean;
  /** A zone is judged by its own history from a day on. */
  readonly historyHours: number;
  /** Events of each zone at rest. */
  readonly perSecond: number;
  readonly seed: number;
  readonly onProgress: (what: string) => void;
}

/** One rise, and how long after its events its message came. */
export interface MeasuredRise {
  readonly zoneId: number;
  readonly kind: RiseKind;
  readonly ruleId: string | null;
  readonly ratePerSecond: number;
  /** From the first event to the message. Null: no message came. */
  readonly delayMs: number | null;
  readonly parts: RiseParts | null;
  /** Whether the first message is about a rule or an incident. */
  readonly said: string | null;
  readonly messages: number;
}

export interface MeasuredRises {
  readonly rises: readonly MeasuredRise[];
  /** Requests per minute and zone, by operation. */
  readonly atRest: Readonly<Record<string, number>>;
  readonly whileRising: Readonly<Record<string, number>>;
  /** Share of a core at rest. */
  readonly cpuAtRest: { readonly service: number; readonly postgres: number };
  /** Statements and transactions a second at rest. */
  readonly commitsAtRest: number;
}

const Message = z.looseObject({
  alertId: z.number(),
  reason: z.string(),
  kind: z.string(),
  zoneId: z.number().nullable(),
  ruleId: z.string().nullable(),
  windowMinutes: z.number(),
  threshold: z.number(),
  attackers: z.array(z.looseObject({ kind: z.string(), key: z.string() })).optional(),
});
type Message = z.infer<typeof Message> & { readonly at: number };

/**
 * Starts the service over an emulator, waits until the history is copied, and lets a rule or an attacker rise in each zone. An event of
 * this emulator is shown at its time, so the time of the event that reaches the threshold is that of its first showing.
 */
export async function benchRises(options: RisesBenchOptions): Promise<MeasuredRises> {
  const { rises, onProgress, isRealPlatform, groupWait } = options;
  const zoneIds = Array.from({ length: rises }, (_, i) => FIRST_ZONE + i);
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-rises-"));
  onProgress("starting Postgres and the emulator");
  const cluster = await startCluster();
  const flags = ["--zones", zoneIds.join(","), "--events-per-second", String(rises * options.perSecond)];
  const history = ["--history-hours", String(options.historyHours), "--late-share", "0", "--no-state"];
  const emulator = await startEmulatorProcess([...flags, ...history], () => onProgress("the emulator ended"));
  const channel = await openChannel();
  const route = groupWait === null ? {} : { route: { channels: ["webhook"], group_wait: groupWait } };
  const config = path.join(folder, "longwatch.yaml");
  writeFileSync(config, JSON.stringify({ schedule: isRealPlatform ? {} : DEMO_SCHEDULE, ...route }));
  const url = await cluster.createMigrated(DATABASE);
  const service = startServiceProcess({
    DATABASE_URL: url,
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
  const serverPid = await cluster.readPid();
  const readCpu = () => ({
    service: readCpuMs(listTree(service.child.pid)),
    postgres: readCpuMs(listTree(serverPid)),
  });
  const measureRest = async () => {
    const [cpu, commits, startedAt] = [readCpu(), await cluster.countCommits(DATABASE), Date.now()];
    const atRest = await measureRequests(REST_MS);
    const [after, ms] = [readCpu(), Date.now() - startedAt];
    const share = (name: keyof typeof cpu) => (after[name] - cpu[name]) / ms;
    const cpuAtRest = { service: share("service"), postgres: share("postgres") };
    return {
      atRest,
      cpuAtRest,
      commitsAtRest: (((await cluster.countCommits(DATABASE)) - commits) * 1_000) / ms,
    };
  };
  const searches = await followSearches(url);
  try {
    onProgress("copying the history");
    await untilCopied(cluster, zoneIds.length * (options.historyHours - 1)).catch((thrown: unknown) => {
      throw new Error(`the history was not copied: ${service.printed().slice(-2_000)}`, { cause: thrown });
    });
    onProgress("measuring at rest");
    await delay(SETTLE_MS);
    // After a first start every rule is asked about once.
    for (let i = 0; i < MOST_SETTLES; i += 1)
      if (((await measureRequests(SETTLE_MS))["rule-metrics"] ?? 0) < 1) break;
    const rest = await measureRest();
    searches.go();
    if (options.isRestOnly) return { rises: [], whileRising: {}, ...rest };
    const drawn = drawRises(zoneIds, options);
    for (const { zoneId, kind, ruleId, startMs, ratePerSecond } of drawn) {
      const what = kind === "rule" ? `rule=${ruleId}` : `kind=${SCRIPTS[kind].kind}`;
      const attack = `zone=${zoneId},${what},start=${startMs},duration=${RISE_MS / 1_000}s,rate=${ratePerSecond}/s`;
      await fetch(`${emulator.url}/_emulator/attacks`, { method: "POST", body: JSON.stringify({ attack }) });
    }
    onProgress("waiting for the messages");
    const whileRising = await measureRequests(RISES_MS + 2 * MINUTE_MS);
    const isOver = () => drawn.every((rise) => firstOf(channel.messages, rise) !== undefined);
    for (const endsAt = Date.now() + RISE_MS; !isOver() && Date.now() < endsAt; ) await delay(1_000);
    const measured = [];
    for (const rise of drawn)
      measured.push(
        await measureRise(cluster, { messages: channel.messages, searches: searches.moments }, rise),
      );
    return { rises: measured, whileRising, ...rest };
  } finally {
    await searches.stop();
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
async function untilCopied(cluster: Cluster, wanted: number): Promise<void> {
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
  readonly kind: RiseKind;
  readonly ruleId: string | null;
  readonly startMs: number;
  readonly ratePerSecond: number;
}

/** Returns one rise per zone that begins at any second of the time. Those of rules have 0.3 to 12 events a second. */
function drawRises(
  zoneIds: readonly number[],
  { seed, isFlood }: Pick<RisesBenchOptions, "seed" | "isFlood">,
): Rise[] {
  const fraction = createFractions(seed);
  const from = Date.now() + 5_000;
  return zoneIds.map((zoneId, i) => {
    const kind = isFlood ? "flood" : (KINDS[i % KINDS.length] as RiseKind);
    const startMs = from + Math.floor(fraction() * RISES_MS);
    const drawn = Number((0.3 * 40 ** fraction()).toFixed(2));
    return kind === "rule"
      ? { zoneId, kind, startMs, ratePerSecond: drawn, ruleId: RULES[i % RULES.length] as string }
      : { zoneId, kind, startMs, ratePerSecond: SCRIPTS[kind].ratePerSecond, ruleId: null };
  });
}

function isOf({ zoneId, ruleId, startMs }: Rise): (message: Message) => boolean {
  return (one) => one.zoneId === zoneId && (ruleId === null || one.ruleId === ruleId) && one.at >= startMs;
}

function firstOf(messages: readonly Message[], rise: Rise): Message | undefined {
  return messages.find(isOf(rise));
}

interface Heard {
  readonly messages: readonly Message[];
  readonly searches: readonly SearchMoment[];
}

async function measureRise(cluster: Cluster, heard: Heard, rise: Rise): Promise<MeasuredRise> {
  const { zoneId, kind, ruleId, ratePerSecond } = rise;
  const first = firstOf(heard.messages, rise);
  const messages = heard.messages.filter(isOf(rise)).length;
  const measured = { zoneId, kind, ruleId, ratePerSecond, messages };
  if (first === undefined) return { ...measured, delayMs: null, parts: null, said: null };
  const { attackers: [attacker] = [], windowMinutes, threshold } = first;
  const isOfSources = first.kind === "sources" && attacker !== undefined;
  const { where, member } = isOfSources
    ? termsOf(attacker)
    : { where: `rule_id = '${first.ruleId}'`, member: "null" };
  const rows = await cluster.query<RiseEvent>(
    DATABASE,
    `select (extract(epoch from occurred_at) * 1000)::float8 as at, ${member} as member from waf_events
     where zone_id = ${zoneId} and ${where}
       and occurred_at >= to_timestamp(${(rise.startMs - HOUR_MS) / 1_000}) order by occurred_at`,
  );
  const reachedAt = findReached(rows, { windowMinutes, threshold, isOfSources }, rise.startMs);
  const firstAt = rows.find(({ at }) => at >= rise.startMs)?.at ?? rise.startMs;
  const [alert] = await cluster.query<{ at: number }>(
    DATABASE,
    `select (extract(epoch from fired_at) * 1000)::float8 as at from alerts where id = ${first.alertId}`,
  );
  const times = { firstAt, reachedAt, firedAt: alert?.at ?? null, toldAt: first.at };
  const parts = splitDelay(
    times,
    heard.searches.filter((one) => one.zoneId === zoneId),
  );
  const said = isOfSources ? `${attacker.kind}=${attacker.key}` : first.ruleId;
  return { ...measured, delayMs: first.at - firstAt, parts, said };
}

const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** Returns how the events of an attacker are found, and what its series counts, in SQL. */
function termsOf({ kind, key }: { readonly kind: string; readonly key: string }) {
  if (kind === "rules_per_ip") return { where: `ip = ${quote(key)}`, member: "rule_id" };
  const of = kind.replace("ips_per_", "");
  if (of === "url") return { where: `strpos(url, ${quote(key)}) > 0`, member: "ip" };
  return { where: `${of} = ${quote(key)}`, member: "ip" };
}

const PARTS = ["floor", "tick", "poll", "verdict", "delivery"] as const;

export function reportRises(measured: MeasuredRises, { isRealPlatform, isFlood }: RisesBenchOptions): string {
  const { rises, atRest, whileRising, cpuAtRest, commitsAtRest } = measured;
  const seconds = (ms: number | null | undefined) =>
    ms === undefined || ms === null ? "-" : `${(ms / 1_000).toFixed(1)} s`;
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
  const operations = Object.keys({ ...atRest, ...whileRising }).filter(
    (name) => (whileRising[name] ?? 0) + (atRest[name] ?? 0) > 0,
  );
  const polls = atRest["search-event-logs"] ?? 0;
  const kinds = isFlood ? (["flood"] as const) : KINDS;
  const afterLine = (one: MeasuredRise) =>
    one.delayMs === null || one.parts?.floor == null ? null : one.delayMs - one.parts.floor;
  return [
    ...alignColumns([
      [
        "zone",
        "kind",
        "events/s",
        "first message about",
        ...PARTS,
        "from the first",
        "from the line",
        "messages",
      ],
      ...rises.map((one) => [
        String(one.zoneId),
        one.kind,
        String(one.ratePerSecond),
        one.said?.slice(0, 40) ?? "no message",
        ...PARTS.map((part) => seconds(one.parts?.[part])),
        seconds(one.delayMs),
        seconds(afterLine(one)),
        String(one.messages),
      ]),
    ]),
    "",
    ...alignColumns([
      ["kind", "rises", ...PARTS, "from the first event: median", "most", "from the line: median", "most"],
      ...kinds.map((kind) => {
        const some = rises.filter((one) => one.kind === kind);
        const [whole, after] = [
          toSpread(some.flatMap(({ delayMs }) => delayMs ?? [])),
          toSpread(some.flatMap((one) => afterLine(one) ?? [])),
        ];
        const medians = PARTS.map(
          (part) => toSpread(some.flatMap(({ parts }) => parts?.[part] ?? []))?.median,
        );
        return [
          kind,
          `${some.filter(({ delayMs }) => delayMs !== null).length} of ${some.length}`,
          ...medians.map(seconds),
          ...[whole?.median, whole?.max, after?.median, after?.max].map(seconds),
        ];
      }),
    ]),
    "",
    ...alignColumns([
      ["requests per zone and minute", "at rest", "while zones rise", "ratio"],
      ...operations.map((name) => {
        const [rest, rise] = [atRest[name] ?? 0, whileRising[name] ?? 0];
        return [name, rest.toFixed(2), rise.toFixed(2), rest === 0 ? "-" : (rise / rest).toFixed(2)];
      }),
    ]),
    `searches a minute and zone at rest: ${polls.toFixed(2)}${isRealPlatform ? " (a real platform's schedule)" : ""}`,
    `share of a core at rest: service ${percent(cpuAtRest.service)}, Postgres ${percent(cpuAtRest.postgres)}; ${commitsAtRest.toFixed(1)} transactions a second`,
    "",
  ].join("\n");
}
