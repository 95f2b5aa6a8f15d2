import { createDatabase } from "#db/client.ts";
import { WORK_SESSIONS } from "#db/postgres/server.ts";
import { createDetectSourcesJob } from "#jobs/detection/detect-sources.ts";
import { createLog } from "#lib/log.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { startCluster } from "./ingest/cluster.ts";
import { judge, type Verdict } from "./measure.ts";
import { listTree, readCpuMs } from "./process-tree.ts";
import { alignColumns } from "./tables.ts";

/** The first tick; the ticks of an hour's end come half an hour later. */
const START = Date.UTC(2026, 10, 20, 12, 30);
const STEADY_TICKS = 5;
const DATABASE = "bench_ticks";

export interface TicksBenchOptions {
  readonly zones: number;
  /** Events of each zone. */
  readonly perMinute: number;
  readonly onProgress: (what: string) => void;
}

/** Times in ms; CPU of this process and of Postgres. */
export interface MeasuredTick {
  readonly name: string;
  readonly wallMs: number;
  readonly ownCpuMs: number;
  readonly postgresCpuMs: number;
}

/** How long the job detect-sources takes: the first time in a process, in the minutes after, and at an hour's end. */
export async function benchTicks(options: TicksBenchOptions): Promise<MeasuredTick[]> {
  const { onProgress } = options;
  onProgress("starting Postgres, storing events");
  const cluster = await startCluster();
  try {
    const days = Array.from({ length: 8 }, (_, i) =>
      new Date(START - (6 - i) * 24 * HOUR_MS).toISOString().slice(0, 10),
    );
    const url = await cluster.createMigrated(DATABASE, days);
    for (const statement of fill(options)) await cluster.query(DATABASE, statement);
    return await measureTicks(url, options);
  } finally {
    await cluster.stop();
  }
}

/** Events of five hours, and a week of hours that were counted before them. */
function fill({ zones, perMinute }: TicksBenchOptions): string[] {
  const now = START / 1_000;
  const each = `generate_series(1, ${zones}) as zone`;
  const hours = `generate_series(${now - (now % 3_600) - 169 * 3_600}, ${now + 7_200}, 3600) as second`;
  return [
    `insert into waf_events (zone_id, occurred_at, log_id, route, rule_id, ip, ja4, ua, url, asn, country, action)
     select zone, to_timestamp(${now} - 10800 + (n + random()) * ${60 / perMinute}), zone || '/' || n, 'search',
       '9' || (random() * random() * 60)::int || '100', '10.' || zone % 250 || '.' || (random() * 250)::int || '.7',
       't13d15' || (random() * random() * 40)::int || 'h2_8daaf6152771_b0da82dd1658',
       'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/' || (random() * 60)::int,
       'https://shop.example/page/' || (random() * random() * 200)::int || '?q=' || n, 'AS' || (random() * 120)::int, 'NL', 'block'
     from ${each}, generate_series(0, ${300 * perMinute - 1}) as n`,
    `insert into rule_buckets (zone_id, rule_id, width, starts_at, total, blocked, logged, challenged, other)
     select zone_id, rule_id, 60, date_trunc('minute', occurred_at), count(*), count(*), 0, 0, 0
     from waf_events group by 1, 2, 4`,
    `insert into coverage_windows (zone_id, starts_at, searched_through, state, stored_count)
     select zone, to_timestamp(second), to_timestamp(second + 7200), 'open', coalesce(events, 0) from ${each} cross join ${hours}
     left join (select zone_id, date_trunc('hour', occurred_at) as starts_at, count(*) as events from waf_events group by 1, 2) e
       on e.zone_id = zone and e.starts_at = to_timestamp(second)`,
    `insert into source_hours (zone_id, starts_at, is_stale, peaks)
     select zone, to_timestamp(second), false, (select array_agg((random() * 9)::int + g * 0) from generate_series(1, 15) as g where zone > 0)
     from ${each}, ${hours} where second < ${now - (now % 3_600)}`,
    `insert into source_usual (zone_id, day, peak3, peak15, peak60, address)
     select zone, date '2026-11-20' - back, 2, 4, 6, '10.' || zone % 250 || '.' || n || '.' || back * (n % 3) from ${each},
       generate_series(1, 7) as back, generate_series(1, 22) as n`,
    "vacuum analyze",
  ];
}

async function measureTicks(url: string, { zones, onProgress }: TicksBenchOptions): Promise<MeasuredTick[]> {
  let now = START + 1;
  const log = createLog({ level: "warn", stream: process.stderr });
  const database = createDatabase({
    url,
    max: 4,
    applicationName: WORK_SESSIONS,
    onError: (err: Error) => log.error({ err }, "connection lost"),
  });
  const job = createDetectSourcesJob({
    database,
    clock: () => now,
    log,
    zoneIds: Array.from({ length: zones }, (_, i) => i + 1),
    sourceMode: () => "on",
    knownSources: () => [],
    afterSpikes: () => undefined,
  });
  async function tick(name: string): Promise<MeasuredTick> {
    onProgress(name);
    const [cpu, tree, startedAt] = [process.cpuUsage(), readCpuMs(listTree()), performance.now()];
    await job.run({} as never, new AbortController().signal);
    const wallMs = performance.now() - startedAt;
    const own = process.cpuUsage(cpu);
    const ownCpuMs = (own.user + own.system) / 1_000;
    return { name, wallMs, ownCpuMs, postgresCpuMs: Math.max(readCpuMs(listTree()) - tree - ownCpuMs, 0) };
  }
  try {
    const measured = [await tick("the first of a process")];
    for (let i = 1; i <= STEADY_TICKS; i += 1) {
      now += MINUTE_MS;
      measured.push(await tick(`minute ${i}`));
    }
    // The first hour was begun without the process, so it is counted from its events.
    for (const [end, name] of [
      [30, "the end of the first hour"],
      [90, "the end of a later hour"],
    ] as const) {
      for (; now < START + end * MINUTE_MS; now += 5 * MINUTE_MS) await tick("later");
      now = START + (end + 1) * MINUTE_MS + 1;
      measured.push(await tick(name));
      now += MINUTE_MS;
      measured.push(await tick("the minute after"));
    }
    return measured;
  } finally {
    await database.close();
  }
}

export function judgeTicks(ticks: readonly MeasuredTick[]): Verdict[] {
  const limit = { kind: "at-most", value: 1_000, unit: "ms" } as const;
  return ticks.map(({ name, wallMs }) => judge(name, limit, [wallMs]));
}

export function reportTicks(ticks: readonly MeasuredTick[]): string {
  const rows = ticks.map(({ name, ...ms }) => [
    name,
    ...[ms.wallMs, ms.ownCpuMs, ms.postgresCpuMs].map((value) => `${value.toFixed(0)} ms`),
  ]);
  return `${alignColumns([["tick", "time", "CPU of the service", "CPU of Postgres"], ...rows]).join("\n")}\n`;
}
