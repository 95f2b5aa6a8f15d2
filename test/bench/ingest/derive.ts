import { createDatabase, type Database } from "#db/client.ts";
import { WORK_SESSIONS } from "#db/postgres/server.ts";
import { createDetectSourcesJob } from "#jobs/detection/detect-sources.ts";
import { createRollUpTrendsJob } from "#jobs/detection/roll-up-trends.ts";
import { createLog } from "#lib/log.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { listTree, readCpuMs } from "../process-tree.ts";

/** The last hours, whose minutes are judged as they are live. The service runs for months, so the first half warms up. */
const LIVE_HOURS = 16;
/** The events of a minute at 2 million a day: a tick takes as many. */
const EVENTS_PER_TICK = 2_000_000 / 1_440;
/** A tick judges the minutes of the last quarter of an hour. */
const LONGEST_STEP = 14;
/** Ticks that count the history of the zones: a day of each at a time. */
const WARMING_TICKS = 4;

/** CPU of this process and of Postgres. */
export interface SpentCpu {
  readonly ownMs: number;
  readonly postgresMs: number;
}

export interface DeriveReport {
  readonly rollUp: SpentCpu;
  readonly sources: SpentCpu;
  /** Events of the judged minutes. */
  readonly judgedEvents: number;
  /** Disk of the source series. */
  readonly bytesPerEvent: number;
}

/** Measures the CPU that `work` takes, here and in Postgres. */
export async function spend<T>(
  { pool }: Database,
  work: () => Promise<T>,
): Promise<{ result: T; cpu: SpentCpu }> {
  const { rows } = await pool.query<{ pid: number }>(
    "select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::integer as pid",
  );
  const readPostgres = () => readCpuMs(listTree(rows[0]?.pid));
  const [before, own] = [readPostgres(), process.cpuUsage()];
  const result = await work();
  const spent = process.cpuUsage(own);
  const ownMs = (spent.user + spent.system) / 1_000;
  return { result, cpu: { ownMs, postgresMs: readPostgres() - before } };
}

/** Rolls up what was ingested, and runs the ticks of the source series over the last hours before `now`. */
export async function derive(
  databaseUrl: string,
  zones: readonly number[],
  now: number,
): Promise<DeriveReport> {
  const log = createLog({ level: "warn", stream: process.stderr });
  const onError = (err: Error) => log.error({ err }, "connection lost");
  const database = createDatabase({ url: databaseUrl, max: 4, applicationName: WORK_SESSIONS, onError });
  const run = (job: { run: (payload: never, signal: AbortSignal) => Promise<unknown> }) =>
    job.run({} as never, new AbortController().signal);
  try {
    const rollUp = await spend(database, () => run(createRollUpTrendsJob({ database, log })));
    // The walk has read every hour, and no seal has judged them.
    await database.pool.query("update coverage_windows set searched_through = starts_at + interval '1 hour'");
    await database.pool.query("vacuum analyze");
    const liveFrom = now - (LIVE_HOURS / 2) * HOUR_MS;
    const { rows } = await database.pool.query<{ total: number }>(
      "select count(*)::integer as total from waf_events where occurred_at >= to_timestamp($1) and occurred_at < to_timestamp($2)",
      [liveFrom / 1_000, now / 1_000],
    );
    const judgedEvents = rows[0]?.total ?? 0;
    const perMinute = judgedEvents / (LIVE_HOURS * 30);
    const step = Math.min(Math.max(Math.round(EVENTS_PER_TICK / perMinute), 1), LONGEST_STEP);
    let clock = now - LIVE_HOURS * HOUR_MS + 1;
    const job = createDetectSourcesJob({
      database,
      log,
      clock: () => clock,
      zoneIds: zones,
      sourceMode: () => "on",
      knownSources: () => [],
      afterSpikes: () => undefined,
    });
    for (let i = 0; i < WARMING_TICKS; i += 1) await run(job);
    for (; clock <= liveFrom; clock += step * MINUTE_MS) await run(job);
    const sources = await spend(database, async () => {
      for (; clock <= now; clock += step * MINUTE_MS) await run(job);
    });
    return {
      rollUp: rollUp.cpu,
      sources: sources.cpu,
      judgedEvents,
      bytesPerEvent: await readBytesPerEvent(database),
    };
  } finally {
    await database.close();
  }
}

async function readBytesPerEvent({ pool }: Database): Promise<number> {
  await pool.query("vacuum full source_hours, source_usual");
  const { rows } = await pool.query<{ bytes: number }>(
    `select (pg_total_relation_size('source_hours') + pg_total_relation_size('source_usual'))::float8
       / (select count(*) from waf_events where date_trunc('hour', occurred_at) in (select starts_at from source_hours)) as bytes`,
  );
  return rows[0]?.bytes ?? 0;
}
