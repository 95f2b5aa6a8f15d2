/** What custom conditions cost: `npm run bench -- conditions`. */
import { readCondition } from "#archive/rules/query/custom-conditions.ts";
import { createDatabase } from "#db/client.ts";
import { WORK_SESSIONS } from "#db/postgres/server.ts";
import { createJudgeConditionsJob } from "#jobs/detection/judge-conditions.ts";
import { createLog } from "#lib/log.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { CustomCondition } from "#model/custom-condition.ts";
import { startCluster } from "./ingest/cluster.ts";
import { atMost, judge, type Verdict } from "./measure.ts";
import { listTree, readCpuMs } from "./process-tree.ts";

const START = Date.UTC(2026, 10, 20, 12);
const ZONE = 101;
/** How often a zone is polled. Each poll that finds something is followed by a run. */
const EVERY_MS = 10_000;
const WARMING_RUNS = 6;
const RUNS = 24;
const DATABASE = "bench_conditions";

export interface ConditionsBenchOptions {
  readonly conditions: number;
  readonly perSecond: number;
  readonly onProgress: (what: string) => void;
}

export interface MeasuredConditions {
  readonly conditions: number;
  readonly perSecond: number;
  /** Shares of a core. */
  readonly own: number;
  readonly postgres: number;
  /** Counts of minutes and open spikes at the end: what the conditions have found. */
  readonly counted: number;
  readonly holding: number;
}

/** Filters as people write them: most name a rule or a path, and few find what is frequent. */
function toFilters(i: number): { readonly filters: string[]; readonly query?: string } {
  const country = ["NL", "DE", "FR", "US"][i % 4] ?? "NL";
  const kinds = [
    [`rule:eq:9${i % 400}100`, "action:eq:block"],
    [`rule:eq:9${i % 90}100`, `country:not-eq:${country}`],
    [`path:wildcard:/page/${i % 250}*`, `country:not-in:${country},BE`],
    [`path:eq:/page/${i}`],
    [`url:contains:/admin${i}`],
    [`agent:contains:scanner-${i}`, `rule:wildcard:94*`],
    [`address:cidr:10.${i % 250}.${i % 200}.0/24`],
    [`address:not-cidr:10.0.0.0/8`, `host:eq:shop${i}.example`],
    [`network:in:${i},${i + 1},${i + 2}`, `path:not-contains:/health`],
  ];
  return i % 20 === 0 ? { filters: [], query: `needle-${i}` } : { filters: kinds[i % kinds.length] ?? [] };
}

function makeConditions(count: number): CustomCondition[] {
  return Array.from({ length: count }, (_, i) => {
    const distinct = i % 10 === 3 ? { distinct: "address" } : {};
    const limits = { moreThan: 20 + 20 * (i % 50), withinMs: [5, 15, 60, 360][i % 4]! * MINUTE_MS };
    const written = { name: `c${i}`, zoneIds: null, severity: "warning" as const, ...limits, ...distinct };
    const read = readCondition({ ...written, ...toFilters(i) });
    if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
    return read.condition;
  });
}

/** CPU of counting and judging events as they arrive: the running minute is counted anew after every poll. */
export async function benchConditions(options: ConditionsBenchOptions): Promise<MeasuredConditions> {
  const { conditions, perSecond, onProgress } = options;
  onProgress("starting Postgres");
  const cluster = await startCluster();
  try {
    const url = await cluster.createMigrated(DATABASE, ["2026-11-19", "2026-11-20"]);
    const log = createLog({ level: "warn", stream: process.stderr });
    const onError = (err: Error) => log.error({ err }, "connection lost");
    const database = createDatabase({ url, max: 4, applicationName: WORK_SESSIONS, onError });
    let now = START;
    const all = makeConditions(conditions);
    const deps = { database, clock: () => now, log, zoneIds: [ZONE], afterSpikes: () => undefined };
    const job = createJudgeConditionsJob({ ...deps, conditions: () => all });
    const run = () => job.run({} as never, new AbortController().signal);
    // Some history, which the first run counts by searches.
    await cluster.query(DATABASE, fill({ from: now - 5 * MINUTE_MS, to: now, perSecond }));
    await cluster.query(DATABASE, "vacuum analyze");
    onProgress("the first run counts the windows");
    await run();
    let [own, tree] = [0, 0];
    onProgress(`${RUNS} runs of ${EVERY_MS / 1_000} seconds`);
    for (let i = 0; i < WARMING_RUNS + RUNS; i += 1) {
      await cluster.query(DATABASE, fill({ from: now, to: now + EVERY_MS, perSecond }));
      now += EVERY_MS;
      await cluster.query(
        DATABASE,
        `insert into changed_minutes (zone_id, minute) values (${ZONE}, date_trunc('minute', to_timestamp(${(now - 1) / 1_000})))
         on conflict (zone_id, minute) do update set seq = excluded.seq`,
      );
      const [cpu, before] = [process.cpuUsage(), readCpuMs(listTree())];
      await run();
      const spent = process.cpuUsage(cpu);
      if (i < WARMING_RUNS) continue;
      own += (spent.user + spent.system) / 1_000;
      tree += readCpuMs(listTree()) - before;
    }
    const { rows } = await database.pool.query<{ counted: number; holding: number }>(
      `select (select count(*) from condition_minutes)::integer as counted,
         (select count(*) from spikes where closed_at is null)::integer as holding`,
    );
    await database.close();
    const share = (ms: number) => ms / (RUNS * EVERY_MS);
    const [found = { counted: 0, holding: 0 }] = rows;
    return { conditions, perSecond, own: share(own), postgres: Math.max(share(tree - own), 0), ...found };
  } finally {
    await cluster.stop();
  }
}

function fill({ from, to, perSecond }: { from: number; to: number; perSecond: number }): string {
  const count = Math.round(((to - from) / 1_000) * perSecond);
  return `insert into waf_events (zone_id, occurred_at, log_id, route, rule_id, ip, ja4, ua, url, asn, country, action, message)
    select ${ZONE}, to_timestamp(${from / 1_000} + n / ${perSecond}::float8), ${from} || '/' || n, 'search',
      '9' || (random() * random() * 600)::int || '100', '10.' || (random() * 250)::int || '.' || (random() * 250)::int || '.7',
      't13d15' || (random() * random() * 40)::int || 'h2_8daaf6152771_b0da82dd1658',
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/' || (random() * 60)::int,
      'https://shop.example/page/' || (random() * random() * 400)::int || '?q=' || n, (random() * 3000)::int::text,
      (array['NL', 'DE', 'FR', 'US', 'BE'])[1 + (random() * 4)::int], (array['block', 'log'])[1 + random()::int], 'SQL injection'
    from generate_series(0, ${count - 1}) as n`;
}

export function judgeConditions({ own, postgres }: MeasuredConditions): Verdict[] {
  return [judge("CPU of custom conditions, of a core", atMost(0.05), [own + postgres])];
}

export function reportConditions(measured: MeasuredConditions): string {
  const { conditions, perSecond, own, postgres, counted, holding } = measured;
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  return `${conditions} conditions, ${perSecond} events a second: ${percent(own + postgres)} of a core (service ${percent(own)}, Postgres ${percent(postgres)}; limit 5 %)
${counted} counts of minutes, ${holding} conditions hold\n`;
}
