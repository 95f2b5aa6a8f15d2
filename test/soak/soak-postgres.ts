import { chmodSync, existsSync, readFileSync } from "node:fs";
import path from "node:path";
import pg from "pg";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "#store/embedded/postgres.ts";
import { startTcpProxy, type TcpProxy } from "../faults/tcp-proxy.ts";

/** Durable settings as in production, because the server is going to crash. */
const SETTINGS = ["fsync=on", "synchronous_commit=on", "max_connections=120", "shared_buffers=128MB"];

export interface SoakPostgres {
  /** URL through the proxy, the same after restarts. */
  readonly url: string;
  readonly proxy: TcpProxy;
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
  /** `fast` asks all sessions to end. `immediate` is like a power cut, with recovery at the next start. */
  restart(how: "fast" | "immediate", downMs: number): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a Postgres for the soak that can be made to crash. */
export async function startSoakPostgres(dataDir: string): Promise<SoakPostgres> {
  chmodSync(dataDir, 0o755);
  const start = () => startEmbeddedPostgres({ dataDir, settings: SETTINGS });
  let postgres: EmbeddedPostgres = await start();
  const portOf = () => Number(new URL(postgres.url).port);
  // One restart at a time, because a crash in the middle of a restart would start two servers on one folder.
  let restarted = Promise.resolve();
  const proxy = await startTcpProxy(portOf());
  return {
    url: proxy.through(postgres.url),
    proxy,
    async query(text, values = []) {
      const client = new pg.Client({ connectionString: postgres.url, connectionTimeoutMillis: 10_000 });
      client.on("error", () => undefined);
      await client.connect();
      try {
        return (await client.query(text, values)).rows;
      } finally {
        await client.end();
      }
    },
    restart(how, downMs) {
      const turn = restarted.then(async () => {
        if (how === "immediate") process.kill(readPostmaster(dataDir), "SIGQUIT");
        await postgres.stop();
        await new Promise((resolve) => setTimeout(resolve, downMs));
        postgres = await start();
        proxy.leadTo(portOf());
        // Connections to the ended server are dead already, but those in the proxy are not.
        proxy.cut();
      });
      restarted = turn.catch(() => undefined);
      return turn;
    },
    async stop() {
      await proxy.close();
      await postgres.stop();
    },
  };
}

function readPostmaster(dataDir: string): number {
  const pointer = path.join(dataDir, "postgres-at");
  const folder = existsSync(pointer) ? readFileSync(pointer, "utf8").trim() : path.join(dataDir, "postgres");
  return Number(readFileSync(path.join(folder, "postmaster.pid"), "utf8").split("\n")[0]);
}
