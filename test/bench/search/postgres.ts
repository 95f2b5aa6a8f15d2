import { once } from "node:events";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { from as copyFrom } from "pg-copy-streams";
import { createDatabase, type Database } from "#db/client.ts";
import { compareBuckets } from "#db/detection/compare-buckets.ts";
import { migrate } from "#db/migrate.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import { startEmbeddedPostgres } from "#store/embedded/postgres.ts";

/** Durable as in production; nothing falls on one contestant or the other by chance. */
const SETTINGS = ["shared_buffers=1GB", "max_wal_size=8GB", "checkpoint_timeout=1h", "autovacuum=off"];

export interface ArchivePostgres {
  readonly url: string;
  readonly database: Database;
  /** Copies a day's file (CSV) into its partition and counts its hours and buckets. */
  addDay(day: string, file: string, nowMs: number): Promise<void>;
  /** What autovacuum would have done by then, and a check of the roll-ups against the project's own recount. */
  finish(checkedDay: string): Promise<void>;
  stop(): Promise<void>;
}

/** A Postgres with the service's schema in `folder`, made on the first call. */
export async function openPostgres(folder: string): Promise<ArchivePostgres> {
  const postgres = await startEmbeddedPostgres({ dataDir: folder, settings: SETTINGS });
  await migrate({ url: postgres.url });
  const database = createDatabase({
    url: postgres.url,
    max: 6,
    applicationName: "bench",
    onError: () => undefined,
    statementTimeoutMs: 3_600_000,
  });
  const keeper = createPartitionKeeper(database);
  return {
    url: postgres.url,
    database,
    addDay: async (day, file, nowMs) => {
      await keeper.withDays([day], () => copyFile(database, file));
      await countDay(database, day, nowMs);
    },
    finish: async (checkedDay) => {
      await database.pool.query("vacuum (analyze)");
      const from = new Date(`${checkedDay}T00:00:00Z`);
      const differing = await compareBuckets(database.db, {
        from,
        to: new Date(from.getTime() + 86_400_000),
      });
      if (differing.length > 0)
        throw new Error(`roll-ups differ from a recount: ${JSON.stringify(differing[0])}`);
    },
    stop: async () => {
      await database.close();
      await postgres.stop();
    },
  };
}

async function copyFile(database: Database, file: string): Promise<void> {
  const client = await database.pool.connect();
  try {
    const copy = client.query(
      copyFrom(
        "copy waf_events (occurred_at, zone_id, log_id, route, feature, rule_id, ip, ja4, ua, url, asn, country, action, message) from stdin (format csv)",
      ),
    );
    const closed = once(copy, "finish");
    await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), copy);
    await closed;
  } finally {
    client.release();
  }
}

/** What ingest counts of a day's hours and roll-up-trends makes of its minutes, in bulk. Every past hour is sealed. */
async function countDay(database: Database, day: string, nowMs: number): Promise<void> {
  const counts = "sum(total), sum(blocked), sum(logged), sum(challenged), sum(other)";
  const columns = "zone_id, rule_id, width, starts_at, total, blocked, logged, challenged, other";
  const inDay = (column: string) =>
    `${column} >= '${day} 00:00Z' and ${column} < '${day} 00:00Z'::timestamptz + interval '1 day'`;
  await database.pool.query(`
    insert into rule_buckets (${columns})
    select zone_id, rule_id, 60, date_bin('1 minute', occurred_at, to_timestamp(0)), count(*),
      count(*) filter (where action = 'block'), count(*) filter (where action = 'log'),
      count(*) filter (where action = 'challenge'), count(*) filter (where action not in ('block', 'log', 'challenge'))
    from waf_events where ${inDay("occurred_at")} group by 1, 2, 4`);
  await database.pool.query(
    `insert into coverage_windows (zone_id, starts_at, stored_count, state, sealed_at, evidence)
     select zone_id, hour, n, case when hour < at.now - interval '2 hours' then 'sealed' else 'open' end, now, '{}'
     from (select zone_id, date_bin('1 hour', occurred_at, to_timestamp(0)) as hour, count(*) as n
           from waf_events where ${inDay("occurred_at")} group by 1, 2) hours, (select $1::timestamptz as now) at`,
    [new Date(nowMs)],
  );
  for (const [finer, width] of [
    [60, 3_600],
    [3_600, 86_400],
  ]) {
    await database.pool.query(`
      insert into rule_buckets (${columns})
      select zone_id, rule_id, ${width}, date_bin('${width} seconds', starts_at, to_timestamp(0)), ${counts}
      from rule_buckets where width = ${finer} and ${inDay("starts_at")} group by 1, 2, 4`);
  }
}
