import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { createEmulator, type Emulator } from "#emulator/emulator.ts";
import { type ServiceProcess, startServiceProcess } from "../faults/service-process.ts";
import { startTcpProxy, type TcpProxy } from "../faults/tcp-proxy.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../faults/webhook-receiver.ts";
import { type LyingPlatform, startLyingPlatform } from "../support/liar/lying-platform.ts";
import { findRedisServer, startTestRedis } from "../support/redis.ts";
import { writeSchedule } from "../support/write-schedule.ts";
import { type Machines, type RedisForm, ROLES, startMachines } from "./soak-machines.ts";
import { type SoakPostgres, startSoakPostgres } from "./soak-postgres.ts";

export const ZONES = [101, 102] as const;

/** A service that has started says how far the history is, or that it watches its zones. */
const STARTED = / of [\d,]+ events|Watching zone/;

/** A service that is started again whenever it has ended. */
interface SoakReplica {
  readonly name: string;
  kill(signal: NodeJS.Signals): void;
  /** Waits for the end of the current process, then for `afterMs`, and starts the next. */
  startAgain(afterMs: number): Promise<void>;
}

export interface SoakRedis {
  readonly proxy: TcpProxy;
  readonly proxiedUrl: string;
  flush(): Promise<void>;
  restart(downMs: number): Promise<void>;
  stop(): Promise<void>;
}

export interface SoakWorld {
  readonly emulator: Emulator;
  readonly postgres: SoakPostgres;
  /** Null if no server is on PATH. The queues are in Postgres then. */
  readonly redis: SoakRedis | null;
  readonly toPlatform: TcpProxy;
  /** The lying platform, between the network and the emulator. */
  readonly liar: LyingPlatform;
  readonly receiver: WebhookReceiver;
  readonly replicas: readonly SoakReplica[];
  /** Null if each store has one server. */
  readonly machines: Machines | null;
  /** Replicas that ended without a fault, and how. */
  readonly unaskedEnds: readonly string[];
  /** Returns the end of the replicas' output on terminal and log. */
  readLogs(): string;
  close(): Promise<void>;
}

export interface SoakWorldOptions {
  readonly seed: number;
  readonly replicas: number;
  readonly historyHours: number;
  readonly eventsPerSecond: number;
  /** Set: Postgres has a standby, Redis several servers, and each replica roles of its own. */
  readonly machines: RedisForm | null;
}

/**
 * Opens the whole service in separate processes, and everything that it depends on, each behind a network that can
 * fail.
 */
export async function openSoakWorld(options: SoakWorldOptions): Promise<SoakWorld> {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-soak-"));
  const dataDir = path.join(folder, "postgres");
  mkdirSync(dataDir);
  const { seed, historyHours, eventsPerSecond } = options;
  const emulator = await createEmulator({
    zones: [...ZONES],
    seed: String(seed),
    historyHours,
    eventsPerSecond,
    lateShare: 0.05,
    maxLatenessMs: 4 * 60_000,
    pageSize: 400,
    order: seed % 2 === 0 ? "oldest" : "newest",
  });
  const liar = await startLyingPlatform({
    url: emulator.url,
    now: () => emulator.now(),
    isWitnessed: false,
  });
  const machines = options.machines === null ? null : await startMachines(folder, options.machines);
  const [postgres, toPlatform, receiver, redis] = await Promise.all([
    machines?.postgres ?? startSoakPostgres(dataDir),
    startTcpProxy(liar.port),
    startWebhookReceiver(),
    machines?.redis ?? startRedis(),
  ]);
  const disk = { kind: "file", folder: machines?.folder, start: "all" };
  const env = {
    DATABASE_URL: postgres.url,
    ...(redis === null ? {} : { REDIS_URL: redis.proxiedUrl }),
    EDGE_API_URL: toPlatform.through(liar.url),
    EDGE_API_KEY: emulator.accessKey,
    EDGE_SHIELD_ZONES: ZONES.join(","),
    ...writeSchedule(folder, { "poll-events": "*/2 * * * * *" }, machines === null ? {} : { disk }),
    LONGWATCH_LOG_LEVEL: "warn",
    // Every replica has a data folder of its own, and all need the same key.
    LONGWATCH_PSEUDONYM_KEY: "pseudonym-key-of-every-replica-of-the-soak",
    NODE_COMPILE_CACHE: path.join(folder, "compiled"),
    ...receiver.env,
  };
  const lines: string[] = [];
  const unaskedEnds: string[] = [];
  const onUnasked = (end: string) => void unaskedEnds.push(end);
  const replicas = Array.from({ length: options.replicas }, (_, index) => {
    const name = `replica ${index + 1}`;
    const roles = machines === null ? {} : { LONGWATCH_ROLES: ROLES[index % ROLES.length] ?? "" };
    const own = { ...env, ...roles, LONGWATCH_DATA_DIR: path.join(folder, name) };
    return createSoakReplica(name, own, lines, onUnasked);
  });
  return {
    emulator,
    postgres,
    redis,
    toPlatform,
    liar,
    receiver,
    replicas,
    machines,
    unaskedEnds,
    readLogs: () => lines.join(""),
    async close() {
      await Promise.all(replicas.map((replica) => replica.end()));
      await Promise.all([postgres.stop(), toPlatform.close(), redis?.stop(), liar.close()]);
      await emulator.close();
      receiver.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function createSoakReplica(
  name: string,
  env: Record<string, string>,
  lines: string[],
  onUnasked: (end: string) => void,
) {
  let isEnding = false;
  const kills = new WeakSet<ServiceProcess>();
  let service = launch();
  const keep = (ended: ServiceProcess) => {
    lines.push(`--- ${name}\n${ended.printed()}`);
    if (lines.length > 40) lines.shift();
  };

  /** Starts the service again after it has ended by itself, like a supervisor. Such an end is also reported. */
  function launch(): ServiceProcess {
    const launched = startServiceProcess(env);
    void launched.exited.then((end) => {
      if (isEnding || kills.has(launched) || service !== launched) return;
      // A start that cannot reach its database ends with 1, and says so.
      const isFailedStart = end === 1 && !STARTED.test(launched.printed());
      if (!isFailedStart) onUnasked(`${name} ended by itself: ${end}`);
      keep(launched);
      service = launch();
    });
    return launched;
  }

  return {
    name,
    kill(signal: NodeJS.Signals) {
      if (signal !== "SIGSTOP" && signal !== "SIGCONT") kills.add(service);
      service.child.kill(signal);
    },
    async startAgain(afterMs: number) {
      const ended = service;
      await ended.exited;
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      // Two faults at once may end the same process. Only one of them starts the next.
      if (isEnding || service !== ended) return;
      keep(ended);
      service = launch();
    },
    async end() {
      isEnding = true;
      service.child.kill("SIGCONT");
      service.child.kill("SIGTERM");
      const force = setTimeout(() => service.child.kill("SIGKILL"), 12_000);
      await service.exited;
      clearTimeout(force);
      keep(service);
    },
  };
}

async function startRedis() {
  const server = findRedisServer();
  if (server === null) return null;
  const redis = await startTestRedis(server);
  const proxy = await startTcpProxy(Number(new URL(redis.url).port));
  return {
    proxy,
    proxiedUrl: proxy.through(redis.url),
    async flush() {
      const client = new Redis(redis.url);
      await client.flushall().finally(() => client.disconnect());
    },
    async restart(downMs: number) {
      await redis.kill();
      await new Promise((resolve) => setTimeout(resolve, downMs));
      await redis.restart();
    },
    async stop() {
      await proxy.close();
      await redis.stop();
    },
  };
}
