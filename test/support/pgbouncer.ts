import { type ChildProcess, spawn } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { findFreePort } from "./free-port.ts";
import { overTcp } from "./over-tcp.ts";

/** PgBouncer refuses to run as root. */
const NOBODY = 65_534;

export interface Pooler {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts PgBouncer before the database of this URL, as a provider does: start-up settings that it does not know are refused. */
export async function startPgBouncer(
  program: string,
  databaseUrl: string,
  mode: "session" | "transaction" | "statement",
): Promise<Pooler> {
  const { username, password, hostname, port, pathname } = new URL(databaseUrl);
  const name = pathname.slice(1);
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-pgbouncer-"));
  const ownPort = await findFreePort();
  const settings = [
    "[databases]",
    `${name} = host=${hostname} port=${port} dbname=${name} user=${username} password=${decodeURIComponent(password)}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${ownPort}`,
    "unix_socket_dir =",
    "auth_type = any",
    `pool_mode = ${mode}`,
    "default_pool_size = 40",
    "max_client_conn = 200",
  ];
  const file = path.join(folder, "pgbouncer.ini");
  writeFileSync(file, `${settings.join("\n")}\n`);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const one of [folder, file]) chownSync(one, NOBODY, NOBODY);
  const server = spawn(program, ["-q", file], {
    stdio: "ignore",
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  });
  const url = new URL(overTcp(databaseUrl));
  url.hostname = "127.0.0.1";
  url.port = String(ownPort);
  await untilAnswers(url.href, server);
  return {
    url: url.href,
    async stop() {
      const ended = new Promise((resolve) => server.once("exit", resolve));
      server.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function untilAnswers(url: string, server: ChildProcess): Promise<void> {
  for (;;) {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return;
    } catch (thrown) {
      if (server.exitCode !== null) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, 20));
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}
