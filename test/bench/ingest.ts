import { MINUTE_MS } from "#lib/units.ts";
import { nextMessage, startChild, stopChild } from "./child.ts";
import { type Cluster, startCluster } from "./ingest/cluster.ts";
import { runCopyPeer, writeCopyFiles } from "./ingest/copy-peer.ts";
import type { DeriveReport, SpentCpu } from "./ingest/derive.ts";
import { BENCH_NOW, dayNames, WARM_UP_ZONE } from "./ingest/history.ts";
import type { ServedPages } from "./ingest/page-server.ts";
import { JSONB_TABLE, missingTools, runScriptPeer } from "./ingest/script-peer.ts";
import type { WalkCommand, WalkReport } from "./ingest/subject.ts";
import { LAUNCH } from "./launch-options.ts";

export interface IngestBenchOptions {
  readonly events: number;
  readonly repeats: number;
  readonly sessions: number;
  /** Called with progress messages for people. */
  readonly onProgress: (what: string) => void;
}

/** One contestant's turn: events per second, and bytes per event where it wrote. */
export interface Turn {
  readonly eventsPerSecond: number;
  readonly walPerEvent: number;
  readonly diskPerEvent: number;
}

export interface IngestBenchResult {
  readonly served: ServedPages;
  readonly service: readonly Turn[];
  readonly replay: readonly number[];
  readonly copy: readonly Turn[];
  /** Empty when a tool of the chain is missing. */
  readonly script: readonly Turn[];
  readonly missingTools: readonly string[];
  /** Resident memory of the ingesting process, at most, per turn. */
  readonly peakRssBytes: readonly number[];
  /** Processor time per event, in microseconds. */
  readonly cpuUsPerEvent: readonly CpuPerEvent[];
  readonly sourceBytesPerEvent: readonly number[];
  readonly diskByTable: ReadonlyMap<string, number>;
}

/** Processor time of the service and of Postgres together, except for `own`. */
export interface CpuPerEvent {
  /** Of the ingesting process alone. */
  readonly own: number;
  readonly ingest: number;
  readonly rollUp: number;
  /** Of a tick of the source series for each minute of 2 million events a day. */
  readonly sources: number;
}

const SERVICE = "bench_service";
const COPY = "bench_copy";
const SCRIPT = "bench_script";

interface Bench {
  readonly cluster: Cluster;
  readonly served: ServedPages;
}

/** All contestants in turn, over the same pages and cluster, as often as `repeats` says. */
export async function benchIngest(options: IngestBenchOptions): Promise<IngestBenchResult> {
  const { onProgress } = options;
  onProgress("rendering pages, starting Postgres");
  const server = startChild("ingest/page-server.ts", [String(options.sessions), String(options.events)]);
  const cluster = await startCluster();
  try {
    const bench = { cluster, served: await nextMessage<ServedPages>(server) };
    return await runTurns(bench, options);
  } finally {
    await stopChild(server);
    await cluster.stop();
  }
}

async function runTurns(
  bench: Bench,
  { repeats, onProgress }: IngestBenchOptions,
): Promise<IngestBenchResult> {
  const missing = missingTools();
  const service: ServiceTurn[] = [];
  const copy: Turn[] = [];
  const script: Turn[] = [];
  for (let repeat = 1; repeat <= repeats; repeat++) {
    const say = (what: string) => onProgress(`repeat ${repeat} of ${repeats}: ${what}`);
    say("the service");
    service.push(await takeServiceTurn(bench));
    if (repeat === 1) await writeCopyFiles(bench.cluster, SERVICE, bench.served.zones);
    say("COPY by the server");
    copy.push(await takeCopyTurn(bench));
    if (missing.length > 0) continue;
    say("curl | jq | psql");
    script.push(await takeScriptTurn(bench));
  }
  return {
    served: bench.served,
    service,
    replay: service.map((turn) => turn.replayEventsPerSecond),
    copy,
    script,
    missingTools: missing,
    peakRssBytes: service.map((turn) => turn.peakRssBytes),
    cpuUsPerEvent: service.map((turn) => turn.cpuUsPerEvent),
    sourceBytesPerEvent: service.map((turn) => turn.sourceBytesPerEvent),
    diskByTable: service.at(-1)?.diskByTable ?? new Map(),
  };
}

interface ServiceTurn extends Turn {
  readonly replayEventsPerSecond: number;
  readonly peakRssBytes: number;
  readonly cpuUsPerEvent: CpuPerEvent;
  readonly sourceBytesPerEvent: number;
  readonly diskByTable: ReadonlyMap<string, number>;
}

/** A new process each time, warmed up on another zone and database: the service runs for months, not for seconds. */
async function takeServiceTurn({ cluster, served }: Bench): Promise<ServiceTurn> {
  const child = startChild("ingest/subject.ts", [], LAUNCH);
  try {
    await nextMessage(child);
    const walk = (databaseUrl: string, zones: readonly number[], now: number) => {
      child.send({ kind: "walk", databaseUrl, zones, now, platformUrl: served.url } satisfies WalkCommand);
      return nextMessage<WalkReport>(child);
    };
    await walk(await cluster.createMigrated("bench_warm_up"), [WARM_UP_ZONE], BENCH_NOW);
    const url = await cluster.createMigrated(SERVICE);
    const { result, walBytes } = await cluster.measureWal(() => walk(url, served.zones, BENCH_NOW));
    expectEvents("the service", result.inserted, served.events - result.quarantined);
    const diskByTable = await cluster.diskByTable(SERVICE);
    const replay = await walk(url, served.zones, BENCH_NOW + 16 * MINUTE_MS);
    expectEvents("the replay", replay.inserted, 0);
    expectEvents("the replay's entries", replay.entries, served.events);
    child.send({
      kind: "derive",
      databaseUrl: url,
      zones: served.zones,
      now: BENCH_NOW,
      platformUrl: served.url,
    } satisfies WalkCommand);
    const { rollUp, sources, judgedEvents, bytesPerEvent } = await nextMessage<DeriveReport>(child);
    const toUs = ({ ownMs, postgresMs }: SpentCpu, events: number) => ((ownMs + postgresMs) * 1_000) / events;
    return {
      ...toTurn(served, result.ms, { walBytes, diskBytes: total(diskByTable) }),
      diskByTable,
      replayEventsPerSecond: (served.events / replay.ms) * 1_000,
      peakRssBytes: result.peakRssBytes,
      cpuUsPerEvent: {
        own: (result.cpu.ownMs * 1_000) / served.events,
        ingest: toUs(result.cpu, served.events),
        rollUp: toUs(rollUp, served.events),
        sources: toUs(sources, judgedEvents),
      },
      sourceBytesPerEvent: bytesPerEvent,
    };
  } finally {
    await stopChild(child);
  }
}

async function takeCopyTurn({ cluster, served }: Bench): Promise<Turn> {
  await cluster.createMigrated(COPY, dayNames().map(toIsoDay));
  const { result: ms, walBytes } = await cluster.measureWal(() => runCopyPeer(cluster, COPY, served.zones));
  await expectRows(cluster, COPY, "waf_events", served.events);
  return toTurn(served, ms, { walBytes, diskBytes: total(await cluster.diskByTable(COPY)) });
}

async function takeScriptTurn({ cluster, served }: Bench): Promise<Turn> {
  await cluster.createEmpty(SCRIPT);
  await cluster.query(SCRIPT, JSONB_TABLE);
  const chain = { platformUrl: served.url, zones: served.zones, days: dayNames() };
  const { result: ms, walBytes } = await cluster.measureWal(() => runScriptPeer(cluster, SCRIPT, chain));
  await expectRows(cluster, SCRIPT, "entries", served.events);
  return toTurn(served, ms, { walBytes, diskBytes: total(await cluster.diskByTable(SCRIPT)) });
}

function toTurn(served: ServedPages, ms: number, bytes: { walBytes: number; diskBytes: number }): Turn {
  return {
    eventsPerSecond: (served.events / ms) * 1_000,
    walPerEvent: bytes.walBytes / served.events,
    diskPerEvent: bytes.diskBytes / served.events,
  };
}

/** A contestant that stored something else than the pages hold has no speed. */
function expectEvents(who: string, found: number, wanted: number): void {
  if (found !== wanted) throw new Error(`${who}: ${found} events where ${wanted} were expected`);
}

async function expectRows(cluster: Cluster, name: string, table: string, wanted: number): Promise<void> {
  const [row] = await cluster.query<{ n: number }>(name, `select count(*)::integer as n from ${table}`);
  expectEvents(table, row?.n ?? 0, wanted);
}

function total(tables: ReadonlyMap<string, number>): number {
  return [...tables.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** `MM-dd-yyyy` as `yyyy-mm-dd`. */
function toIsoDay(name: string): string {
  const [month, day, year] = name.split("-");
  return `${year}-${month}-${day}`;
}
