import path from "node:path";
import { createDatabase, type Database } from "../db/client.ts";
import { readClockOffset } from "../db/clock.ts";
import { migrate } from "../db/migrate.ts";
import { createPartitionKeeper } from "../db/partition-keeper.ts";
import { claimDue } from "../db/queries/leases.ts";
import { readServiceStatus } from "../db/queries/service-status.ts";
import { createJobs, type JobSettings, listTicks } from "../jobs/index.ts";
import type { Notifier } from "./channel/notifier.ts";
import { createSlackNotifier } from "./channel/slack.ts";
import { createTerminalNotifier, type TerminalStream } from "./channel/terminal.ts";
import { createWebhookNotifier } from "./channel/webhook.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { DAY_MS } from "./coverage/horizon.ts";
import { createEdgeClient, type EdgeClient } from "./edge/edge-client.ts";
import { createEdgeTransport } from "./edge/transport.ts";
import { startEmbeddedPostgres } from "./embedded/postgres.ts";
import { startEmulatorProcess } from "./emulator-process.ts";
import { createHttp } from "./http/http.ts";
import { createMetrics, type Metrics } from "./http/metrics.ts";
import type { IngestObserver } from "./ingest/ingest-observer.ts";
import { createListPageWorkers } from "./list-page-workers.ts";
import type { Log } from "./log.ts";
import { measureJob } from "./measure-job.ts";
import { createQueueBackend } from "./queue/backend.ts";
import { type Bell, createBell } from "./queue/bell.ts";
import type { AnyJob, QueueName } from "./queue/define-job.ts";
import { createDoorbell } from "./queue/doorbell.ts";
import { createSchedule } from "./queue/schedule.ts";
import { removeRuntimeFile, writeRuntimeFile } from "./runtime-file.ts";
import { createSecret, type Secret } from "./secret.ts";
import { createStopStack } from "./stop-stack.ts";

/** Together with the forced end of a stop, inside ten seconds. */
const STOP_GRACE_MS = 2_000;
/** Beside the main thread and Postgres more would only wait for each other. */
const INGEST_THREADS = 1;
const EMULATED_ZONES = [101, 102] as const;
const EMULATED_ATTACK = "zone=101,rule=942100,start=+60s,duration=5m,rate=12/s";

export interface AppOptions {
  readonly config: Config;
  readonly log: Log;
  /** Where the terminal channel prints. */
  readonly terminal: TerminalStream;
  /** Told, in a person's words, what is being done. */
  readonly onStep: (step: string) => void;
}

/** What a start brought up. */
export interface RunningApp {
  readonly database: Database;
  readonly edge: EdgeClient;
  readonly clock: Clock;
  readonly zoneIds: readonly number[];
  readonly platform: { readonly url: string; readonly accessKey: Secret; readonly isEmulated: boolean };
  /** Null where this process serves no HTTP. */
  readonly httpUrl: string | null;
}

export interface App {
  /** Brings everything up in order; rejects, with nothing left running, when a part does not come. */
  start(): Promise<RunningApp>;
  /** Takes everything down in reverse, also what a start in progress has built; idempotent. */
  stop(): Promise<void>;
}

/** The composition root: the only place that knows every part. */
export function createApp(options: AppOptions): App {
  const { log } = options;
  const stack = createStopStack((part, error) => log.warn({ part, err: error }, "part did not stop"));
  const stopping = new AbortController();
  let starting: Promise<RunningApp> | undefined;
  return {
    async start() {
      starting = build(options, stack, stopping.signal);
      try {
        return await starting;
      } catch (thrown) {
        await stack.stop();
        throw thrown;
      }
    },
    async stop() {
      stopping.abort(new Error("the service is stopping"));
      await starting?.catch(() => undefined);
      await stack.stop();
    },
  };
}

type StopStack = ReturnType<typeof createStopStack>;

/** One long straight line on purpose: every step needs what the ones before it built. */
async function build(options: AppOptions, stack: StopStack, stopping: AbortSignal): Promise<RunningApp> {
  const { config, log, onStep } = options;
  const begin = (step: string) => {
    stopping.throwIfAborted();
    onStep(step);
  };
  const metrics = createMetrics();

  begin(config.databaseUrl === null ? "Starting embedded Postgres" : "Connecting to Postgres");
  const databaseUrl = await openPostgres(config, stack);
  await migrate({ url: databaseUrl.reveal() });
  const database = createDatabase({
    url: databaseUrl.reveal(),
    max: 20,
    applicationName: "longwatch",
    onError: (error) => log.warn({ err: error }, "database connection lost"),
  });
  stack.defer("database", () => database.close());
  const clock = await createClock(database, log, stack);

  if (config.edge.url === null) begin("Starting the platform's emulator");
  const platform = await openPlatform(config, log, stack);
  const transport = createEdgeTransport({
    baseUrl: platform.url,
    accessKey: platform.accessKey,
    onAttempt: ({ operation, code }) => metrics.edgeRequests.inc({ operation, outcome: code ?? "ok" }),
  });
  stack.defer("platform connections", () => transport.close());
  const edge = createEdgeClient(transport);
  const workers = createListPageWorkers({ threads: INGEST_THREADS });
  stack.defer("page threads", () => workers.close());
  const zoneIds = platform.isEmulated ? EMULATED_ZONES : config.edge.zones;

  begin(`Starting jobs (queues in ${config.redisUrl === null ? "Postgres" : "Redis"})`);
  const settings = readSettings(config, platform.isEmulated);
  let bell: Bell | undefined;
  const jobs = createJobs({
    database,
    edge,
    clock,
    log,
    settings,
    digestListPage: workers.digest,
    partitions: createPartitionKeeper(database),
    observer: observeIngest(metrics),
    notifiers: createNotifiers(options),
    ring: (job) => bell?.ring(job) ?? Promise.resolve(false),
  }).map((job) => measureJob(job, metrics, systemClock));
  const opened = openQueues({ config, log, metrics, jobs, zones: zoneIds.length, databaseUrl });
  bell = opened.bell;
  stack.defer("queues", opened.close);
  opened.start();

  const schedule = createSchedule({
    entries: listTicks(zoneIds, settings).flatMap(({ job, everyMs, payloads }) => {
      const queue = jobs.find(({ name }) => name === job)?.queue;
      if (queue === undefined || !config.roles.includes(queue)) return [];
      return payloads.map((payload) => {
        const name = [job, ...Object.values(payload)].join(".");
        const isDue = () => claimDue(database.db, `tick.${name}`, everyMs);
        return { name, everyMs, isDue, ring: () => opened.bell.ring(job, payload) };
      });
    }),
    onError: (tick, error) => log.warn({ tick, err: error }, "tick failed"),
  });
  stack.defer("schedule", () => schedule.stop());
  stopping.throwIfAborted();
  schedule.start();

  const httpUrl = config.roles.includes("http")
    ? await listen({ config, log, metrics, database, clock, zoneIds }, stack)
    : null;
  writeRuntimeFile(config.dataDir, { pid: process.pid, databaseUrl: databaseUrl.reveal(), httpUrl });
  stack.defer("runtime file", () => removeRuntimeFile(config.dataDir));
  log.info({ zoneIds, httpUrl, queues: opened.kind, emulated: platform.isEmulated }, "service started");
  return { database, edge, clock, zoneIds, platform, httpUrl };
}

async function openPostgres(config: Config, stack: StopStack): Promise<Secret> {
  if (config.databaseUrl !== null) return config.databaseUrl;
  const postgres = await startEmbeddedPostgres({
    dataDir: config.dataDir,
    settings: ["max_wal_size=2GB", "shared_buffers=256MB"],
  });
  stack.defer("embedded Postgres", () => postgres.stop());
  return createSecret(postgres.url);
}

/** Postgres's time on this machine's clock: replicas whose clocks differ agree on what is due and what is closed. */
async function createClock(database: Database, log: Log, stack: StopStack): Promise<Clock> {
  let offsetMs = await readClockOffset(database.db);
  const measure = async () => {
    try {
      offsetMs = await readClockOffset(database.db);
    } catch (thrown) {
      log.debug({ err: thrown }, "clock offset not measured");
    }
  };
  const timer = setInterval(() => void measure(), 60_000);
  stack.defer("clock", () => clearInterval(timer));
  return () => Date.now() + Math.round(offsetMs);
}

async function openPlatform(config: Config, log: Log, stack: StopStack): Promise<RunningApp["platform"]> {
  const { url, key } = config.edge;
  if (url !== null && key !== null) return { url, accessKey: key, isEmulated: false };
  const state = path.join(config.dataDir, "emulator.json");
  const flags = ["--zones", EMULATED_ZONES.join(","), "--state", state, "--attack", EMULATED_ATTACK];
  const emulator = await startEmulatorProcess(flags, () => log.error({}, "emulator ended unexpectedly"));
  stack.defer("emulator", () => emulator.stop());
  return { url: emulator.url, accessKey: emulator.accessKey, isEmulated: true };
}

/** A demonstration should not keep its audience waiting; the real platform is asked as often as configured. */
function readSettings(config: Config, isEmulated: boolean): JobSettings {
  const { pollEveryMs, spikeZ, advicePerHour, retentionDays } = config;
  return {
    pollEveryMs: isEmulated ? Math.min(pollEveryMs, 5_000) : pollEveryMs,
    detectEveryMs: isEmulated ? 5_000 : 30_000,
    spikeZ,
    advicePerHour,
    retentionDays,
  };
}

function createNotifiers({ config, terminal }: AppOptions): ReadonlyMap<string, Notifier> {
  const { webhook, slack, allowPrivate } = config.channels;
  const shared = { clock: systemClock, network: { allowPrivateNetworks: allowPrivate } };
  const notifiers = [createTerminalNotifier({ name: "terminal", stream: terminal })];
  if (webhook !== null) {
    notifiers.push(
      createWebhookNotifier({ name: "webhook", url: webhook.url, secrets: [webhook.secret], ...shared }),
    );
  }
  if (slack !== null) notifiers.push(createSlackNotifier({ name: "slack", url: slack.url, ...shared }));
  return new Map(notifiers.map((notifier) => [notifier.name, notifier]));
}

function observeIngest(metrics: Metrics): IngestObserver {
  return {
    pageStored({ route, zoneId, entries, inserted, filled, quarantined }) {
      const zone = String(zoneId);
      metrics.pages.inc({ route, zone, result: inserted + filled + quarantined > 0 ? "changed" : "known" });
      metrics.events.inc({ zone, route, result: "new" }, inserted);
      metrics.events.inc({ zone, route, result: "quarantined" }, quarantined);
      metrics.events.inc({ zone, route, result: "known" }, Math.max(0, entries - inserted - quarantined));
    },
  };
}

interface QueueParts {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly jobs: readonly AnyJob[];
  readonly zones: number;
  readonly databaseUrl: Secret;
}

function openQueues({ config, log, metrics, jobs, zones, databaseUrl }: QueueParts) {
  const queues = config.roles.filter((role): role is QueueName => role !== "http");
  const backend = createQueueBackend({ redisUrl: config.redisUrl, databaseUrl });
  const onError = (where: string, error: Error) => log.warn({ where, err: error }, "queue in trouble");
  // A backfill holds one worker per zone and route for a long time; the short jobs need room beside it.
  const concurrency = 2 * zones + 4;
  const doorbell = createDoorbell({ backend, jobs, concurrency, ringTimeoutMs: 2_000, onError });
  const bell = createBell({
    doorbell: {
      ...doorbell,
      async ring(job, payload, id) {
        const isHeard = await doorbell.ring(job, payload, id);
        if (!isHeard) metrics.queueRingFailures.inc();
        return isHeard;
      },
    },
    jobs: jobs.filter(({ queue }) => queues.includes(queue)),
    onError: (job, error) => log.warn({ job, err: error }, "job failed"),
  });
  return {
    kind: backend.kind,
    bell,
    start: () => doorbell.startWorkers(queues),
    close: async () => {
      await Promise.all([bell.stop(STOP_GRACE_MS), doorbell.close(STOP_GRACE_MS)]);
    },
  };
}

interface HttpParts extends Pick<RunningApp, "database" | "clock" | "zoneIds"> {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: Metrics;
}

async function listen(parts: HttpParts, stack: StopStack): Promise<string> {
  const { config, log, metrics, database, clock, zoneIds } = parts;
  const http = createHttp({
    log,
    metrics,
    checks: [
      {
        name: "postgres",
        isRequired: true,
        async check() {
          await database.pool.query("select 1");
          return { state: "ok" };
        },
      },
    ],
    async readBacklog() {
      const status = await readServiceStatus(database.db, zoneIds, clock() - 4 * DAY_MS);
      return {
        ...status,
        zones: status.zones.map(({ zoneId, newestAt }) => ({
          zoneId,
          ingestLagSeconds: newestAt === null ? null : Math.max(0, (clock() - newestAt) / 1_000),
          hoursToLoss: null,
        })),
      };
    },
  });
  stack.defer("http", () => http.close());
  return http.listen({ host: config.http.host, port: config.http.port });
}
