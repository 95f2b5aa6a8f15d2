import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { makeTouchedFolder } from "#lib/files.ts";
import { childEnvironment } from "#lib/process.ts";
import {
  DuckdbError,
  type DuckdbReply,
  type DuckdbRequest,
  type DuckdbStatement,
  type DuckdbValue,
  toDuckdbError,
} from "./duckdb-messages.ts";

/** How long an interrupted statement may go on before the process is killed. Usual are 1 to 30 ms. */
const INTERRUPT_MS = 2_000;
const SPILL_PREFIX = "spill-";
const CHILD = path.join(import.meta.dirname, "duckdb-process.ts");

export interface DuckdbOptions {
  /** Absolute folders that statements may read and write. */
  readonly folders: readonly string[];
  /** Absolute folder in which each process gets a folder for what does not fit into memory. Created on first use. */
  readonly spillInto: string;
  readonly memoryBytes: number;
  /** The process is killed when it is larger: DuckDB does not keep its own limit. */
  readonly residentBytes: number;
  /** Default 1. */
  readonly threads?: number;
  /** For short statements: the process has the priority of the service. Default: a lower one. */
  readonly isUrgent?: boolean;
  /** The process ends when it was not used for this long. Default 60 s. */
  readonly idleMs?: number;
}

export interface RunOptions {
  /** Interrupts the statements. The call rejects with the signal's reason at once. */
  readonly signal?: AbortSignal | undefined;
  /** Time limit of all the statements together. Default: none. */
  readonly timeoutMs?: number;
  /** Most rows that a statement may return. Default 10,000. */
  readonly maxRows?: number;
  /**
   * Called with their CPU time once no statement of the call runs any more, which may be later than the call rejects. Of a
   * process that has died it is the time since the call.
   */
  readonly onEnd?: ((cpuMs: number) => void) | undefined;
}

/** The rows of each statement, as arrays in the order of the columns. */
type DuckdbResults = readonly (readonly (readonly DuckdbValue[])[])[];

export interface Duckdb {
  /**
   * Runs statements one after another on one new connection, so that temporary tables are theirs alone. Starts the
   * process if there is none.
   * @throws {DuckdbError}
   */
  run(statements: readonly DuckdbStatement[], options?: RunOptions): Promise<DuckdbResults>;
  /** Process id, null while no process runs. */
  pid(): number | null;
  /** Ends the process. Running statements fail. */
  close(): Promise<void>;
}

interface Pending {
  readonly resolve: (results: DuckdbResults, cpuMs: number) => void;
  readonly reject: (error: unknown, cpuMs?: number) => void;
}

/** One process from its start to its end. */
interface Life {
  readonly child: ChildProcess;
  readonly pending: Map<number, Pending>;
  /** Reason why the process was killed. */
  killed: DuckdbError | null;
}

/** Returns a DuckDB that runs in a process of its own, started on first use. */
export function createDuckdb(options: DuckdbOptions): Duckdb {
  const { idleMs = 60_000, residentBytes } = options;
  let starting: Promise<Life> | null = null;
  let current: Life | null = null;
  let idle: NodeJS.Timeout | undefined;
  let nextId = 1;
  let isClosed = false;

  function start(): Promise<Life> {
    starting ??= launch().catch((thrown: unknown) => {
      starting = null;
      throw thrown;
    });
    return starting;
  }

  async function launch(): Promise<Life> {
    const spill = await makeTouchedFolder(options.spillInto, SPILL_PREFIX);
    const child = fork(CHILD, [], {
      serialization: "advanced",
      execArgv: [],
      env: childEnvironment(),
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    const life: Life = { child, pending: new Map(), killed: null };
    child.on("message", (reply: DuckdbReply) => receive(life, reply));
    const onEnd = (how: string) => {
      if (current === life) [current, starting] = [null, null];
      const error = life.killed ?? new DuckdbError("DUCKDB_DIED", `the process of DuckDB ended (${how})`);
      for (const { reject } of life.pending.values()) reject(error);
      life.pending.clear();
      void spill.remove().catch(() => undefined);
    };
    child.once("exit", (code, signal) => onEnd(signal ?? `exit code ${code}`));
    child.once("error", (error) => onEnd(error.message));
    current = life;
    const { folders, memoryBytes, threads = 1, isUrgent = false } = options;
    const settings = { folders, spillFolder: spill.folder, memoryBytes, threads, isUrgent };
    send(life, { kind: "open", settings });
    // An idle process must not keep the service running.
    child.unref();
    child.channel?.unref();
    return life;
  }

  function receive(life: Life, reply: DuckdbReply): void {
    if (reply.kind === "memory") {
      if (reply.residentBytes > residentBytes) {
        const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
        const grown = `the process of DuckDB took ${megabytes(reply.residentBytes)}, more than ${megabytes(residentBytes)}`;
        kill(life, new DuckdbError("DUCKDB_MEMORY", grown));
      }
      return;
    }
    const asked = life.pending.get(reply.id);
    if (reply.kind === "done") asked?.resolve(reply.results, reply.cpuMs);
    else asked?.reject(toDuckdbError(reply.message), reply.cpuMs);
  }

  function kill(life: Life, error: DuckdbError): void {
    life.killed ??= error;
    // The next request starts another process instead of meeting this one's end.
    if (current === life) [current, starting] = [null, null];
    life.child.kill("SIGKILL");
  }

  function send({ child }: Life, request: DuckdbRequest): void {
    // A message to a process that has just ended fails. Its exit rejects the request.
    if (child.connected) child.send(request, () => undefined);
  }

  /** Waits for the reply, and kills the process if it does not follow an interrupt. */
  async function exchange(
    life: Life,
    statements: readonly DuckdbStatement[],
    { signal, timeoutMs, maxRows = 10_000, onEnd }: RunOptions,
  ): Promise<DuckdbResults> {
    const id = nextId++;
    const caller = Promise.withResolvers<DuckdbResults>();
    let overdue: NodeJS.Timeout | undefined;
    const interrupt = (reason: unknown) => {
      caller.reject(reason);
      if (!life.pending.has(id) || overdue !== undefined) return;
      send(life, { kind: "interrupt", id });
      overdue = setTimeout(() => {
        kill(
          life,
          new DuckdbError(
            "DUCKDB_DIED",
            "the process of DuckDB was killed because it did not follow an interrupt",
          ),
        );
      }, INTERRUPT_MS);
    };
    const onAbort = () => interrupt(signal?.reason);
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(
            () => interrupt(new DuckdbError("DUCKDB_TIMEOUT", `took longer than ${timeoutMs} ms`)),
            timeoutMs,
          );
    const sentAt = performance.now();
    const settle =
      <T>(finish: (value: T) => void) =>
      (value: T, cpuMs = performance.now() - sentAt) => {
        life.pending.delete(id);
        clearTimeout(overdue);
        finish(value);
        onEnd?.(cpuMs);
        if (life === current && life.pending.size === 0) rest(life);
      };
    life.pending.set(id, { resolve: settle(caller.resolve), reject: settle(caller.reject) });
    signal?.addEventListener("abort", onAbort, { once: true });
    send(life, { kind: "run", id, statements, maxRows });
    // It may have ended before the request was registered.
    if (!life.child.connected)
      life.pending.get(id)?.reject(new DuckdbError("DUCKDB_DIED", "the process of DuckDB has ended"));
    try {
      return await caller.promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  function rest(life: Life): void {
    life.child.channel?.unref();
    life.child.unref();
    clearTimeout(idle);
    idle = setTimeout(() => {
      if (current !== life || life.pending.size > 0) return;
      [current, starting] = [null, null];
      life.child.disconnect();
    }, idleMs).unref();
  }

  return {
    async run(statements, runOptions = {}) {
      let life: Life;
      try {
        runOptions.signal?.throwIfAborted();
        if (isClosed) throw new DuckdbError("DUCKDB_DIED", "DuckDB was closed");
        life = await start();
        runOptions.signal?.throwIfAborted();
      } catch (thrown) {
        runOptions.onEnd?.(0);
        throw thrown;
      }
      clearTimeout(idle);
      life.child.ref();
      life.child.channel?.ref();
      return exchange(life, statements, runOptions);
    },
    pid: () => current?.child.pid ?? null,
    async close() {
      isClosed = true;
      clearTimeout(idle);
      const life = await starting?.catch(() => null);
      if (life == null || life.child.exitCode !== null || life.child.signalCode !== null) return;
      const ended = once(life.child, "exit");
      life.child.ref();
      kill(life, new DuckdbError("DUCKDB_DIED", "DuckDB was closed"));
      await ended;
    },
  };
}
