import { flushCompileCache } from "node:module";
import { constants, getPriority, setPriority } from "node:os";
import { type DuckDBConnection, DuckDBInstance, LIST, listValue, VARCHAR } from "@duckdb/node-api";
import { messageOf, toError } from "#lib/errors.ts";
import type {
  DuckdbParameter,
  DuckdbReply,
  DuckdbRequest,
  DuckdbSettings,
  DuckdbStatement,
  DuckdbValue,
} from "./duckdb-messages.ts";

/**
 * DuckDB in a process of its own, because its memory cannot be bounded from within and the service's processor time comes
 * first. `duckdb.ts` starts it. Runs each request on a connection of its own and ends when the service does.
 */

/** How often the process reports its memory while statements run. */
const REPORT_MS = 100;
const REPEAT_MS = 10;
const LOWER_BY = constants.priority.PRIORITY_BELOW_NORMAL;
const LOWEST_PRIORITY = constants.priority.PRIORITY_LOW;

const running = new Map<number, DuckDBConnection>();
const interrupted = new Set<number>();
/** CPU time of each request that was not answered yet. */
const unanswered = new Map<number, number>();
let cpuAt = 0;
let opening: Promise<DuckDBInstance> | undefined;

// Ctrl-C reaches the whole group of processes. The service decides when this one ends.
process.on("SIGINT", () => undefined);
process.on("disconnect", () => process.exit(0));
process.on("message", (request: DuckdbRequest) => {
  if (request.kind === "open") {
    if (!request.settings.isUrgent) setPriority(Math.min(getPriority() + LOWER_BY, LOWEST_PRIORITY));
    opening = open(request.settings);
    // The requests report it.
    opening.catch(() => undefined);
  } else if (request.kind === "interrupt") interrupt(request.id);
  else void answer(request);
});

function reply(message: DuckdbReply): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

/** Nothing outside of the folders can be reached, no extension loaded, and no statement can change that. */
async function open({ folders, spillFolder, memoryBytes, threads }: DuckdbSettings): Promise<DuckDBInstance> {
  const instance = await DuckDBInstance.create(":memory:", {
    threads: String(threads),
    memory_limit: `${memoryBytes}B`,
    temp_directory: spillFolder,
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
    allow_community_extensions: "false",
  });
  const connection = await instance.connect();
  const allowed = folders.map((folder) => `'${folder.replaceAll("'", "''")}'`).join(", ");
  for (const statement of [
    "set global timezone = 'UTC'",
    `set global allowed_directories = [${allowed}]`,
    "set global enable_external_access = false",
    "set global lock_configuration = true",
  ])
    await connection.run(statement);
  connection.closeSync();
  // Its owner kills the process, which then has no end at which Node would write the cache.
  flushCompileCache();
  return instance;
}

async function answer({ id, statements, maxRows }: Extract<DuckdbRequest, { kind: "run" }>): Promise<void> {
  divideCpu();
  unanswered.set(id, 0);
  const timer = setInterval(reportMemory, REPORT_MS);
  try {
    const connection = await (await opening)?.connect();
    if (connection === undefined) throw new Error("not open");
    running.set(id, connection);
    try {
      const results: (readonly DuckdbValue[])[][] = [];
      for (const statement of statements) {
        if (interrupted.has(id)) throw new Error("INTERRUPT Error: Interrupted!");
        results.push(await run(connection, statement, maxRows));
      }
      reply({ kind: "done", id, results, cpuMs: divideCpu(id) });
    } finally {
      connection.closeSync();
    }
  } catch (thrown) {
    reply({ kind: "failed", id, message: messageOf(toError(thrown)), cpuMs: divideCpu(id) });
  } finally {
    clearInterval(timer);
    running.delete(id);
    divideCpu();
    unanswered.delete(id);
    interrupted.delete(id);
  }
}

/**
 * Divides the CPU time since the last call among the requests that run, because the threads are shared. Returns what a
 * request has used.
 */
function divideCpu(id?: number): number {
  const { user, system } = process.cpuUsage();
  const share = (user + system - cpuAt) / 1_000 / Math.max(1, unanswered.size);
  cpuAt = user + system;
  for (const [one, cpuMs] of unanswered) unanswered.set(one, cpuMs + share);
  return id === undefined ? 0 : (unanswered.get(id) ?? 0);
}

async function run(
  connection: DuckDBConnection,
  { sql, values = [] }: DuckdbStatement,
  maxRows: number,
): Promise<(readonly DuckdbValue[])[]> {
  const reader = await connection.streamAndReadUntil(
    sql,
    maxRows + 1,
    values.map(toValue),
    values.map((value) => (Array.isArray(value) ? LIST(VARCHAR) : undefined)) as never,
  );
  if (reader.currentRowCount > maxRows) throw new Error(`Too many rows: more than ${maxRows}`);
  return reader.getRowsJS();
}

function toValue(value: DuckdbParameter) {
  return typeof value === "object" && value !== null ? listValue([...value]) : value;
}

/**
 * A request that has not begun is remembered, so that it ends before its next statement. DuckDB forgets an interrupt that
 * comes just before a statement starts, so it is repeated until the request has ended.
 */
function interrupt(id: number): void {
  // The answer may be on its way already.
  if (!unanswered.has(id)) return;
  interrupted.add(id);
  const repeat = () => {
    if (!interrupted.has(id)) return;
    running.get(id)?.interrupt();
    setTimeout(repeat, REPEAT_MS);
  };
  repeat();
}

function reportMemory(): void {
  reply({ kind: "memory", residentBytes: process.memoryUsage.rss() });
}
