import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { createDatabase } from "#db/client.ts";
import { migrate } from "#db/migrate.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { startEmbeddedPostgres } from "#store/embedded/postgres.ts";

/**
 * Durable as in production. Room for the whole run between two checkpoints and no vacuum by itself: both would fall on
 * one contestant or the other by chance.
 */
const SETTINGS = [
  "fsync=on",
  "synchronous_commit=on",
  "full_page_writes=on",
  "shared_buffers=512MB",
  "max_wal_size=8GB",
  "checkpoint_timeout=1h",
  "autovacuum=off",
  "max_connections=60",
];
const TEMPLATE = "bench_template";

export type Cluster = Awaited<ReturnType<typeof startCluster>>;

/** A Postgres for the benchmark alone, and a folder that its server can read and write. */
export async function startCluster() {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-bench-"));
  // If root runs the benchmark, Postgres runs as another user, who must be able to enter the folder.
  chmodSync(folder, 0o755);
  const serverFiles = path.join(folder, "server-files");
  mkdirSync(serverFiles);
  chmodSync(serverFiles, 0o777);
  const dataDir = path.join(folder, "postgres");
  const postgres = await startEmbeddedPostgres({ dataDir, settings: SETTINGS });
  const urlOf = (name: string) => Object.assign(new URL(postgres.url), { pathname: `/${name}` }).href;

  async function query<Row extends pg.QueryResultRow>(name: string, text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: urlOf(name), options: "-c timezone=UTC" });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  }

  await query("postgres", `create database ${TEMPLATE}`);
  await migrate({ url: urlOf(TEMPLATE) });

  return {
    serverFiles,
    urlOf,
    query,

    /** Returns the process whose children are the server's sessions. */
    async readPid(): Promise<number> {
      const [row] = await query<{ folder: string }>(
        "postgres",
        "select setting as folder from pg_settings where name = 'data_directory'",
      );
      return Number(readFileSync(path.join(row?.folder ?? "", "postmaster.pid"), "utf8").split("\n")[0]);
    },

    /** Returns how many transactions have ended in a database. */
    async countCommits(name: string): Promise<number> {
      const text = `select (xact_commit + xact_rollback)::float8 as ended from pg_stat_database where datname = '${name}'`;
      return (await query<{ ended: number }>("postgres", text))[0]?.ended ?? 0;
    },

    /** A new database with the service's schema, without partitions unless days are named. */
    async createMigrated(name: string, days: readonly string[] = []): Promise<string> {
      await query("postgres", `drop database if exists ${name} with (force)`);
      await query("postgres", `create database ${name} template ${TEMPLATE}`);
      if (days.length > 0) {
        const database = createDatabase({
          url: urlOf(name),
          max: 1,
          applicationName: "bench",
          onError: () => undefined,
        });
        await ensurePartitions(database, days);
        await database.close();
      }
      return urlOf(name);
    },

    /** A new, empty database. */
    async createEmpty(name: string): Promise<string> {
      await query("postgres", `drop database if exists ${name} with (force)`);
      await query("postgres", `create database ${name}`);
      return urlOf(name);
    },

    /** Bytes of WAL that `work` wrote. A checkpoint comes first, so that everyone pays for page images alike. */
    async measureWal<T>(work: () => Promise<T>): Promise<{ result: T; walBytes: number }> {
      await query("postgres", "checkpoint");
      const [before] = await query<{ lsn: string }>("postgres", "select pg_current_wal_lsn() as lsn");
      const result = await work();
      const diff = `select pg_wal_lsn_diff(pg_current_wal_lsn(), '${before?.lsn}')::float8 as bytes`;
      const [after] = await query<{ bytes: number }>("postgres", diff);
      return { result, walBytes: after?.bytes ?? 0 };
    },

    /** Bytes on disk of every table of the schema public, with indexes and TOAST, without what an empty one has. */
    async diskByTable(name: string): Promise<Map<string, number>> {
      const rows = await query<{ name: string; bytes: number }>(
        name,
        `select regexp_replace(relname::text, '_[0-9]+.*$', '') as name, sum(pg_total_relation_size(oid))::float8 as bytes
         from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' group by 1 order by 2 desc`,
      );
      return new Map(rows.map((row) => [row.name, row.bytes]));
    },

    async stop(): Promise<void> {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
