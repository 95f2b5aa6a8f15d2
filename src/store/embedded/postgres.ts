/** Starts and stops the embedded Postgres. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { isFullDisk, saysFullDisk } from "#lib/disk.ts";
import { isAlive } from "#lib/process.ts";
import { findPostgresHome } from "./binaries.ts";
import { type PostgresUser, pickPostgresUser, placeCluster, writeWhole } from "./place-cluster.ts";
import { EmbeddedPostgresError, fullDiskOf, requireSpace } from "./postgres-error.ts";

const run = promisify(execFile);

/**
 * Runs Postgres in its own session, so that Ctrl-C reaches the service first. Stops Postgres (fast shutdown) when this
 * process closes the pipe or ends, even after kill -9. It says so again each second, because a server that has just been started
 * ignores the signal. The watch of the pipe ends with the server, because later another process may have the server's id. Its
 * `sleep` may outlive it, and must not hold the server's log.
 */
const KEEPER = `"$@" & child=$!
( read -r _; while kill -INT $child; do sleep 1; done ) <&3 3<&- 2>/dev/null & watch=$!
exec 3<&-
wait $child; code=$?
kill $watch
exit $code`;

const LAST_LINES_MS = 1_000;

/** An id that no system gives to a process. Postgres accepts it in its file. */
const NO_PROCESS = 2 ** 31 - 1;

/**
 * The environment of Postgres. The service's own environment holds secrets that Postgres, which may run as another user,
 * does not need.
 */
const ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin" };

export interface EmbeddedPostgresOptions {
  /** Folder for the cluster, the password and the log; created when missing. */
  readonly dataDir: string;
  /** Settings as `name=value`, for instance `fsync=off` in tests. */
  readonly settings?: readonly string[];
  /** How long a start, including crash recovery, may take. */
  readonly startTimeoutMs?: number;
  /** Starts the existing cluster again on this port; a cluster that is gone is not made anew. */
  readonly port?: number;
  /** Ends a start in progress. */
  readonly signal?: AbortSignal;
}

/** How a server ended. */
export interface ServerEnd {
  /** `exit code 1`, or `signal 9`. */
  readonly reason: string;
  /** The server's last error lines, oldest first. */
  readonly lines: readonly string[];
}

export interface EmbeddedPostgres {
  /** Superuser connection string, loopback only. */
  readonly url: string;
  /** Resolves when the server has ended, by itself or by `stop`. */
  readonly ended: Promise<ServerEnd>;
  /** Fast shutdown; resolves when the server has exited. */
  stop(): Promise<void>;
}

/**
 * Starts the Postgres that came with the installed packages, making its cluster on the first call.
 * @throws {FullDiskError} when the disk of the cluster has no room for it.
 * @throws {EmbeddedPostgresError} with the end of the server's log when it does not come up.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = path.resolve(options.dataDir);
  try {
    return await start({ ...options, dataDir });
  } catch (thrown) {
    if (isFullDisk(thrown)) throw fullDiskOf(dataDir, thrown);
    throw thrown;
  }
}

async function start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir } = options;
  const user = pickPostgresUser();
  const place = placeCluster(dataDir, findPostgresHome(), user);
  requireSpace(dataDir);
  const password = readPassword(dataDir);
  if (!existsSync(path.join(place.dataFolder, "PG_VERSION"))) {
    if (options.port !== undefined) throw new Error(`the cluster in ${place.dataFolder} is gone`);
    await initialise(place.home, place.dataFolder, password, user);
  }
  const deadline = performance.now() + (options.startTimeoutMs ?? 60_000);
  await waitForPredecessor(place.dataFolder, user, deadline, options.signal);
  const port = options.port ?? (await freePort());
  const log = createServerLog();
  const keeper = spawnServer(place.home, place.dataFolder, port, options.settings ?? [], user, log);
  const ended = watchEnd(keeper, log);
  // sslmode is explicit, because PGSSLMODE of the environment would apply otherwise.
  const url = `postgres://longwatch:${password}@127.0.0.1:${port}/postgres?sslmode=disable`;
  const stop = async () => {
    keeper.stdio[3]?.destroy();
    await ended;
  };
  try {
    await waitUntilReady(url, keeper, deadline, options.signal);
  } catch (thrown) {
    await stop();
    throw new EmbeddedPostgresError(`embedded Postgres did not start:\n${log.tail()}`, log.errors(), {
      cause: thrown,
    });
  }
  return { url, ended, stop };
}

/**
 * Resolves when the server has exited and its last lines were read from the pipe. A session that outlives a killed server
 * keeps the pipe open until its statement ends, so the wait is limited.
 */
function watchEnd(keeper: ChildProcess, log: ServerLog): Promise<ServerEnd> {
  return new Promise((resolve) => {
    keeper.once("exit", (code, signal) => {
      keeper.stdio[3]?.destroy();
      const end = () => resolve({ reason: describeEnd(code, signal), lines: log.errors() });
      const timer = setTimeout(end, LAST_LINES_MS);
      keeper.once("close", () => {
        clearTimeout(timer);
        end();
      });
    });
  });
}

/** Describes the end of the server. A shell reports 128 plus the signal's number for a child that a signal ended. */
function describeEnd(code: number | null, signal: NodeJS.Signals | null): string {
  if (code === null) return `signal ${signal}`;
  return code > 128 ? `signal ${code - 128}` : `exit code ${code}`;
}

function readPassword(dataDir: string): string {
  const file = path.join(dataDir, "postgres-password");
  const known = existsSync(file) ? readFileSync(file, "utf8") : "";
  // An earlier start on a full disk may have left an empty file.
  if (known === "") writeWhole(file, randomBytes(24).toString("hex"));
  return readFileSync(file, "utf8");
}

/** Creates the cluster under another name first, so that a kill leaves no incomplete cluster. */
async function initialise(home: string, dataFolder: string, password: string, user: PostgresUser | null) {
  const temporary = `${dataFolder}.new`;
  rmSync(temporary, { recursive: true, force: true });
  rmSync(dataFolder, { recursive: true, force: true });
  const passwordFile = `${dataFolder}.password`;
  mkdirSync(temporary, { recursive: true, mode: 0o700 });
  writeFileSync(passwordFile, password, { mode: 0o600 });

  if (user !== null) for (const owned of [temporary, passwordFile]) chownSync(owned, user.uid, user.gid);
  const initdb = path.join(home, "bin", "initdb");
  const args = [
    "-D",
    temporary,
    "-U",
    "longwatch",
    "-A",
    "scram-sha-256",
    `--pwfile=${passwordFile}`,
    "-E",
    "UTF8",
  ];
  try {
    await run(initdb, [...args, "--locale=C", "--no-instructions"], { ...user, cwd: "/", env: ENVIRONMENT });
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(temporary, dataFolder);
}

/** Waits until an earlier server has ended: after kill -9 of the service it may still shut down. Two servers must never share a cluster. */
async function waitForPredecessor(
  dataFolder: string,
  user: PostgresUser | null,
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const pidFile = path.join(dataFolder, "postmaster.pid");
  while (existsSync(pidFile)) {
    const [pid, ...rest] = readFileSync(pidFile, "utf8").split("\n");
    if (!isAlive(Number(pid))) return;
    if (!isPostgres(Number(pid))) {
      // Postgres does not start while any process of its user has the id. With the other lines it finds sessions that
      // outlive their server.
      writeWhole(pidFile, [NO_PROCESS, ...rest].join("\n"), user);
      return;
    }
    signal?.throwIfAborted();
    if (performance.now() > deadline) {
      throw new Error(
        `another Longwatch uses the database in ${dataFolder}, or is starting or stopping; try again later, or stop it (see ${pidFile})`,
      );
    }
    await delay(50);
  }
}

/** A killed server leaves its file, and another process may have its id by now. Only Linux shows the name of a process. */
function isPostgres(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "postgres";
  } catch {
    return true;
  }
}

function spawnServer(
  home: string,
  dataFolder: string,
  port: number,
  settings: readonly string[],
  user: PostgresUser | null,
  log: ServerLog,
): ChildProcess {
  const flags = ["listen_addresses=127.0.0.1", "unix_socket_directories=", ...settings].flatMap((s) => [
    "-c",
    s,
  ]);
  const server = [path.join(home, "bin", "postgres"), "-D", dataFolder, "-p", String(port), ...flags];
  const keeper = spawn("sh", ["-c", KEEPER, "keeper", ...server], {
    ...user,
    cwd: "/",
    env: ENVIRONMENT,
    detached: true,
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  keeper.stderr?.setEncoding("utf8").on("data", (text: string) => log.add(text));
  return keeper;
}

async function waitUntilReady(
  url: string,
  keeper: ChildProcess,
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (;;) {
    signal?.throwIfAborted();
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return;
    } catch (thrown) {
      if (keeper.exitCode !== null || performance.now() > deadline) throw thrown;
      await delay(50);
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}

/** Returns a free port. If another process takes the port before the server starts, the start fails with an error. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port to listen on");
  return address.port;
}

const MAX_CHARS = 20_000;
const MAX_LINES = 5;
const MAX_LINE_CHARS = 300;
/** Lines about the server itself. Errors of statements are left out, because they may contain addresses and other event data. */
const IS_SERVERS =
  /\s(?:FATAL|PANIC):|\sLOG: {2}(?:could not|.*terminated by signal|.*exited with exit code)/;
/** Routine lines: every client that connects while the server starts or ends causes one. */
const IS_ROUTINE = /FATAL: {2}(?:the database system is|terminating connection)/;

interface ServerLog {
  add(text: string): void;
  /** Returns the last text that the server wrote. */
  tail(): string;
  /** Returns the last error lines of the server, oldest first, at most five. */
  errors(): string[];
}

/** Keeps the end of what a Postgres server writes to stderr. */
export function createServerLog(): ServerLog {
  let text = "";
  return {
    add(more) {
      text = (text + more).slice(-MAX_CHARS);
    },
    tail: () => text.slice(-2_000),
    errors() {
      const lines = text.split("\n").filter((line) => isWorthKeeping(line));
      return [...new Set(lines)].slice(-MAX_LINES).map((line) => line.slice(0, MAX_LINE_CHARS));
    },
  };
}

function isWorthKeeping(line: string): boolean {
  if (IS_ROUTINE.test(line)) return false;
  return IS_SERVERS.test(line) || (saysFullDisk(line) && /\s(?:ERROR|LOG|WARNING):/.test(line));
}
