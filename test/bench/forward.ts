import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createOpenedBlocks } from "#archive/rules/records/find-records.ts";
import { readStored } from "#archive/search/read-records.ts";
import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import { createDatabase, type Database } from "#db/client.ts";
import { WORK_SESSIONS } from "#db/postgres/server.ts";
import { openSink } from "#delivery/receivers/sinks/destination.ts";
import { createForwardEventsJob } from "#jobs/delivery/forwarding/forward-events.ts";
import { createLog } from "#lib/log.ts";
import { createSecret } from "#lib/secret.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import type { EventFormat } from "#model/kinds.ts";
import { UNKNOWN_FACTS } from "#model/request-facts.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { storeEvents } from "../db/new-events.ts";
import { startCluster } from "./ingest/cluster.ts";
import { listTree, readCpuMs } from "./process-tree.ts";
import { alignColumns } from "./tables.ts";

const START = Date.UTC(2026, 10, 18);
const DATABASE = "bench_forward";
const ZONES = 4;
const INGEST_ZONE = 9;
const PAGE = 5_000;

export interface ForwardBenchOptions {
  readonly events: number;
  readonly format: EventFormat;
  readonly onProgress: (what: string) => void;
}

/** Rates in events per second, CPU in microseconds per event. */
export interface MeasuredForward {
  readonly events: number;
  readonly received: number;
  readonly perSecond: number;
  readonly ownCpuUs: number;
  readonly postgresCpuUs: number;
  /** Rate of an ingest that stores pages one after another: alone, and beside the forwarding. */
  readonly ingestAlone: number;
  readonly ingestBeside: number;
  readonly arrivedHours: number;
  readonly hours: number;
  /** Bytes of receipts per event. */
  readonly receiptBytes: number;
}

/** Forwards a backlog of stored events to a webhook, first alone and then beside an ingest that goes on. */
export async function benchForward(options: ForwardBenchOptions): Promise<MeasuredForward> {
  const { events, onProgress } = options;
  onProgress("starting Postgres, storing events");
  const cluster = await startCluster();
  const receiver = fork(path.join(import.meta.dirname, "forward", "receiver.ts"), {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  try {
    const [port] = (await once(receiver, "message")) as [number];
    const url = await cluster.createMigrated(DATABASE, ["2026-11-18", "2026-11-19"]);
    for (const statement of fill(events)) await cluster.query(DATABASE, statement);
    const onError = (error: Error) => process.stderr.write(`${error.message}\n`);
    const database = createDatabase({ url, max: 12, applicationName: WORK_SESSIONS, onError });
    try {
      return await measure(database, { ...options, port, receiver });
    } finally {
      await database.close();
    }
  } finally {
    receiver.kill();
    await cluster.stop();
  }
}

/** Events of one day, spread over the zones, whose hours are sealed. */
function fill(events: number): string[] {
  const second = START / 1_000;
  return [
    `insert into waf_events (zone_id, occurred_at, log_id, route, feature, rule_id, ip, ja4, ua, url, asn, country, action, message)
     select 1 + n % ${ZONES}, to_timestamp(${second} + n * ${86_400 / events}), md5(n::text), 'search', 'waf',
       '9' || (random() * random() * 60)::int || '100', '10.' || n % 250 || '.' || (random() * 250)::int || '.7',
       't13d15' || (random() * random() * 40)::int || 'h2_8daaf6152771_b0da82dd1658',
       'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/' || (random() * 60)::int,
       'https://shop.example/page/' || (random() * random() * 200)::int || '?q=' || n, 'AS' || (random() * 120)::int, 'NL', 'block',
       'SQL injection attempt'
     from generate_series(0, ${events - 1}) as n`,
    `insert into coverage_windows (zone_id, starts_at, state, stored_count, sealed_at, evidence)
     select zone_id, date_trunc('hour', occurred_at, 'UTC'), 'sealed', count(*), now(), '{}' from waf_events group by 1, 2`,
    "vacuum analyze",
  ];
}

async function measure(
  database: Database,
  {
    events,
    format,
    onProgress,
    port,
    receiver,
  }: ForwardBenchOptions & { port: number; receiver: ChildProcess },
): Promise<MeasuredForward> {
  const clock = () => Date.now();
  const settings = {
    url: createSecret(`http://127.0.0.1:${port}/`),
    secrets: [createSecret(`whsec_${Buffer.alloc(32, "bench").toString("base64")}`)],
    allowPrivateNetworks: true,
  };
  const destination = {
    name: "bench",
    kind: "webhook",
    zones: null,
    where: [],
    format,
    batchEvents: 500,
    startAgoMs: null,
    sink: openSink({ name: "bench", kind: "webhook", settings }, { clock }),
  } as const;
  const files = { read: () => Promise.reject(new Error("no archive")) } as unknown as ArchiveReader;
  const reading = { queries: database, files, openedBlocks: createOpenedBlocks() };
  let hasMore = true;
  let forwarded = 0;
  const job = createForwardEventsJob({
    database,
    readStored: (...asked) => readStored(reading, ...asked),
    clock,
    log: createLog({ level: "warn", stream: process.stderr }),
    ocsf: { vendor: null, actions: BUILT_IN_ACTIONS },
    eventDays: 400,
    destinations: new Map([["bench", destination]]),
    zoneIds: Array.from({ length: ZONES }, (_, index) => index + 1),
    onForwarded: (_, counts) => void (forwarded += counts.events),
    again: () => (hasMore = true),
  });
  const ingest = createIngest(database);
  onProgress("storing pages alone");
  const ingestAlone = await ingest(() => false, 10_000);
  onProgress("forwarding beside an ingest");
  const [cpu, tree, startedAt] = [process.cpuUsage(), readCpuMs(listTree()), performance.now()];
  let isForwarding = true;
  const beside = ingest(() => !isForwarding, Number.POSITIVE_INFINITY);
  while (hasMore) {
    hasMore = false;
    await job.run({ destination: "bench" } as never, new AbortController().signal);
    onProgress(`${forwarded} of ${events} events`);
  }
  const wallMs = performance.now() - startedAt;
  isForwarding = false;
  const own = process.cpuUsage(cpu);
  const ownMs = (own.user + own.system) / 1_000;
  const postgresMs = Math.max(readCpuMs(listTree()) - tree - ownMs, 0);
  const ingestBeside = await beside;
  receiver.send("lines");
  const [received] = (await once(receiver, "message")) as [number];
  const { rows } = await database.pool.query(`
    select count(*)::integer as hours, (count(*) filter (where arrival = 'arrived'))::integer as arrived,
      (select pg_total_relation_size('forward_receipts'))::float8 as bytes from forward_hours`);
  const [{ hours, arrived, bytes }] = rows;
  return {
    events,
    received,
    perSecond: (forwarded / wallMs) * 1_000,
    ownCpuUs: (ownMs / forwarded) * 1_000,
    postgresCpuUs: (postgresMs / forwarded) * 1_000,
    ingestAlone,
    ingestBeside,
    arrivedHours: arrived,
    hours,
    receiptBytes: bytes / forwarded,
  };
}

/** Stores pages of new events of a zone that is not forwarded, until it is told to end. Returns events per second. */
function createIngest(database: Database) {
  let count = 0;
  const page = (): WafEvent[] =>
    Array.from({ length: PAGE }, () => {
      count += 1;
      return {
        route: "search",
        occurredAt: START + 86_400_000 + count,
        logId: `ingest-${count}`,
        feature: "waf",
        ruleId: "942100",
        ip: "203.0.113.9",
        ja4: null,
        ua: "curl/8",
        url: `https://shop.example/${count}`,
        asn: "AS64500",
        country: "NL",
        action: "block",
        message: null,
        ...UNKNOWN_FACTS,
      };
    });
  return async (isOver: () => boolean, forMs: number): Promise<number> => {
    const [first, startedAt] = [count, performance.now()];
    while (!isOver() && performance.now() - startedAt < forMs)
      await storeEvents(database, INGEST_ZONE, page(), { expectNew: true });
    return ((count - first) / (performance.now() - startedAt)) * 1_000;
  };
}

export function reportForward(measured: MeasuredForward): string {
  const {
    events,
    received,
    perSecond,
    ownCpuUs,
    postgresCpuUs,
    ingestAlone,
    ingestBeside,
    arrivedHours,
    hours,
    receiptBytes,
  } = measured;
  const rows = [
    ["events, and received", `${events}`, `${received}`],
    ["hours arrived", `${arrivedHours} of ${hours}`, ""],
    [
      "forwarded",
      `${Math.round(perSecond)}/s`,
      `${(perSecond / ingestAlone).toFixed(2)} of the ingest alone`,
    ],
    [
      "CPU per event, both ingest and forwarding",
      `${ownCpuUs.toFixed(1)} us`,
      `Postgres ${postgresCpuUs.toFixed(1)} us`,
    ],
    [
      "ingest alone, and beside",
      `${Math.round(ingestAlone)}/s`,
      `${Math.round(ingestBeside)}/s, ${(ingestBeside / ingestAlone).toFixed(2)} of alone`,
    ],
    ["receipts", `${receiptBytes.toFixed(1)} bytes per event`, ""],
  ];
  return `${alignColumns(rows).join("\n")}\n`;
}
