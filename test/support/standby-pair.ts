import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { startTcpProxy } from "../faults/tcp-proxy.ts";
import { findFreePort } from "./free-port.ts";
import { listProcesses } from "./list-processes.ts";
import type { OlderServer } from "./older-postgres.ts";

/** Postgres refuses to run as root. */
const NOBODY = 65_534;
const SETTINGS = [
  "listen_addresses=127.0.0.1",
  "max_connections=150",
  "wal_keep_size=256MB",
  "wal_retrieve_retry_interval=100ms",
];
const STANDBY = "standby";

interface Machine {
  readonly port: number;
  readonly data: string;
}

/** How a server is lost: every process of it is killed, or stopped, so that its connections stay open and answer nothing. */
export type Loss = "killed" | "silent";

/** A primary and a standby that follows it over a network that can be cut. */
export interface StandbyPair {
  /** Returns the address of a database, as a user writes it: with both hosts. */
  url(database: string): string;
  /** Runs a statement on the present primary. */
  query<Row extends pg.QueryResultRow>(database: string, text: string, values?: unknown[]): Promise<Row[]>;
  /** Has a standby follow the primary. Makes a new one on the machine of a former primary. */
  follow(how: "synchronously" | "asynchronously"): Promise<void>;
  /** Cuts the network between the two: what is committed from now on, the standby lacks. */
  lag(): Promise<void>;
  /** Loses the primary and promotes the standby. Resolves when the standby accepts writes. */
  failOver(loss?: Loss): Promise<void>;
  /** Starts the killed former primary as it was. It follows no one and accepts writes. */
  revive(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts both with the server of Debian's packages, in a temporary folder. */
export async function startStandbyPair({ bin }: OlderServer): Promise<StandbyPair> {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-standby-"));
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  if (isRoot) chownSync(folder, NOBODY, NOBODY);
  const machineOf = async (name: string): Promise<Machine> => ({
    port: await findFreePort(),
    data: path.join(folder, name),
  });
  const machines = [await machineOf("one"), await machineOf("two")] as const;
  let [primary, standby]: readonly [Machine, Machine] = machines;
  let isAlone = false;
  const network = await startTcpProxy(primary.port);
  const running = new Map<Machine, ChildProcess>();

  // Not synchronously: the network between the two is in this process.
  const run = (program: string, ...args: string[]) =>
    promisify(execFile)(path.join(bin, program), args, { ...user, cwd: folder });

  async function start(machine: Machine): Promise<void> {
    const settings = [...SETTINGS, `port=${machine.port}`, `unix_socket_directories=${folder}`, "fsync=off"];
    const options = settings.flatMap((setting) => ["-c", setting]);
    const server = spawn(path.join(bin, "postgres"), ["-D", machine.data, ...options], {
      ...user,
      cwd: folder,
      stdio: "ignore",
    });
    running.set(machine, server);
    await untilAnswers(machine, "select 1 as done", () => server.exitCode !== null);
  }

  async function copyPrimary(): Promise<void> {
    network.leadTo(primary.port);
    const address = `host=127.0.0.1 port=${network.port} user=longwatch application_name=${STANDBY}`;
    await run(
      "pg_basebackup",
      "-D",
      standby.data,
      "-d",
      address,
      "-X",
      "stream",
      "-c",
      "fast",
      "-R",
      "--no-sync",
    );
    await start(standby);
    await untilAnswers(primary, "select state = 'streaming' as done from pg_stat_replication");
  }

  async function ask<Row extends pg.QueryResultRow>(
    { port }: Machine,
    text: string,
    { database = "postgres", values = [] }: { database?: string; values?: unknown[] | undefined } = {},
  ): Promise<Row[]> {
    const url = `postgres://longwatch@127.0.0.1:${port}/${database}`;
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 30_000 });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return (await client.query<Row>(text, values)).rows;
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  async function untilAnswers(machine: Machine, text: string, hasEnded = () => false): Promise<void> {
    for (;;) {
      const [row] = await ask<{ done: unknown }>(machine, text).catch(() => []);
      if (row !== undefined && row.done !== false) return;
      if (hasEnded()) throw new Error(`Postgres of ${machine.data} has ended`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Names the standbys that each commit waits for. */
  async function setSynchronous(names: string): Promise<void> {
    await ask(primary, `alter system set synchronous_standby_names = '${names}'`);
    await ask(primary, "select pg_reload_conf()");
  }

  /** Kills the server and its children, which would otherwise end by themselves a moment later, or stops them. */
  async function lose(machine: Machine, loss: Loss): Promise<void> {
    const server = running.get(machine);
    if (server?.pid === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    const children = listProcesses().filter(({ parent }) => parent === server.pid);
    for (const pid of [server.pid, ...children.map((child) => child.pid)]) {
      try {
        process.kill(pid, loss === "killed" ? "SIGKILL" : "SIGSTOP");
      } catch {
        // It has ended by itself.
      }
    }
    if (loss === "killed") await ended;
  }

  await run(
    "initdb",
    "-D",
    machines[0].data,
    "-U",
    "longwatch",
    "-A",
    "trust",
    "-E",
    "UTF8",
    "--locale",
    "C.UTF-8",
    "--no-sync",
  );
  await start(machines[0]);
  await copyPrimary();

  return {
    url: (database) =>
      `postgres://longwatch@${machines.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${database}?target_session_attrs=read-write`,
    query: (database, text, values) => ask(primary, text, { database, values }),
    async follow(how) {
      if (isAlone) {
        await lose(standby, "killed");
        rmSync(standby.data, { recursive: true, force: true });
        await network.refuse();
        await network.accept();
        await setSynchronous("");
        await copyPrimary();
        isAlone = false;
      }
      const names = how === "synchronously" ? STANDBY : "";
      await setSynchronous(names);
      if (names === "") return;
      await untilAnswers(primary, "select sync_state = 'sync' as done from pg_stat_replication");
    },
    lag: () => network.refuse(),
    async failOver(loss = "killed") {
      await lose(primary, loss);
      await ask(standby, "select pg_promote(true, 60)");
      [primary, standby] = [standby, primary];
      isAlone = true;
    },
    revive: () => start(standby),
    async stop() {
      for (const machine of machines) await lose(machine, "killed");
      await network.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
