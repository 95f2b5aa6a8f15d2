import { accountsOf, type Config } from "#config/config.ts";
import { readVersion } from "#config/read-version.ts";
import { createDatabase } from "#db/client.ts";
import { migrate } from "#db/migrate.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import { refuseServer, WORK_SESSIONS } from "#db/postgres/server.ts";
import type { TerminalStream } from "#delivery/receivers/channels/terminal/terminal.ts";
import { openHeartbeat } from "#delivery/receivers/post.ts";
import { findTooManyInAll } from "#detection/known-sources.ts";
import { readRequests } from "#detection/review/open-review.ts";
import { createMetrics } from "#faces/http/metrics.ts";
import { readWeek } from "#health/digest.ts";
import { reportExcessRights } from "#health/doctor/report-excess-rights.ts";
import { createAskAdvice } from "#jobs/alerts/fetch-advice.ts";
import { temporaryFolder } from "#jobs/archive/archive-store.ts";
import type { JobContext } from "#jobs/context.ts";
import { createJobs, type JobSettings } from "#jobs/index.ts";
import { systemClock } from "#lib/clock.ts";
import { readPauses } from "#lib/cron.ts";
import { messageOf, toError } from "#lib/errors.ts";
import { explainTlsFailure } from "#lib/http.ts";
import type { Log } from "#lib/log.ts";
import { createStopStack, type StopStack } from "#lib/process.ts";
import type { Secret } from "#lib/secret.ts";
import { findTightest, type LastRun, toSchedule } from "#model/schedule.ts";
import { labelAccount } from "#model/zones.ts";
import { localCaller } from "#operations/caller.ts";
import { createExecuteRun } from "#operations/execute-run.ts";
import { auditConfig } from "#people/audit-trail.ts";
import { openAdminKey } from "#people/keys/issue-key.ts";
import { createErasureGuard } from "#people/rules/erasure-guard.ts";
import { createEdgeClient, type EdgeClient } from "#platform/edge-client.ts";
import { planPeriods } from "#proof/rules/plan-search.ts";
import { describePostgresFailure } from "#store/embedded/postgres-error.ts";
import type { Enqueuer } from "#store/queue/enqueuer.ts";
import { createSchedule } from "#store/queue/schedule.ts";
import { openQueryPool } from "./list-routes.ts";
import { measureIngest, measureJob } from "./measure.ts";
import { openAccounts } from "./open-accounts.ts";
import { openAlerting, openForwarding } from "./open-alerting.ts";
import {
  createStorage,
  openArchiveFiles,
  openArchiveStore,
  openReader,
  watchBucket,
} from "./open-archive-store.ts";
import { checkPort, openHttp } from "./open-http.ts";
import { openKeyring } from "./open-keyring.ts";
import { grantSessions, openKeys } from "./open-keys.ts";
import { openLifeSign } from "./open-life-sign.ts";
import { openPlatform, type Platform } from "./open-platform.ts";
import { checkDataFolder, keepOthersOut, openClock, openPostgres } from "./open-postgres.ts";
import { openQueues, planEntries } from "./open-queues.ts";
import { createFullDiskNotice, createOutageReports, reportLostConnections } from "./report-outages.ts";
import { removeRuntimeFile, writeRuntimeFile } from "./runtime-file.ts";
import { createVerifyCrawler } from "./verify-crawler.ts";
import { viewService } from "./view-service.ts";
import { type DatabaseWatch, openDatabaseWatch } from "./watch-database.ts";
import { createKeyReader, recordPlatformHealth, rereadWhenRefused, watchEdge } from "./watch-edge.ts";

/** How long running jobs may go on after a stop has begun. The queues are closed after at most twice this. */
const STOP_GRACE_MS = 1_500;
/** Time limit for all parts, so that a busy machine also ends the process within ten seconds. */
const STOP_BUDGET_MS = 7_000;

export interface AppOptions {
  readonly config: Config;
  readonly log: Log;
  /** The stream to which the terminal channel prints. */
  readonly terminal: TerminalStream;
  /** Called with a short progress message, for example "Starting embedded Postgres". */
  readonly onStep: (step: string) => void;
}

/** The parts of a started service. */
export interface RunningApp extends Pick<JobContext, "database" | "clock" | "zoneIds"> {
  readonly edge: EdgeClient;
  readonly platform: Platform;
  /** Null if this process serves no HTTP. */
  readonly httpUrl: string | null;
  /** The key that this start created because the database had none. It is shown only once. */
  readonly adminKey: Secret | null;
  /** Reads the configuration file again. A file with a mistake changes nothing. */
  readonly reload: () => void;
}

export interface App {
  /** Starts all parts in order. If a part fails, stops the started parts and rejects. */
  start(): Promise<RunningApp>;
  /** Stops all parts in reverse order, including those of a start in progress. Idempotent. */
  stop(): Promise<void>;
}

/** The composition root: the only place that knows every part. */
export function createApp(options: AppOptions): App {
  const { log } = options;
  const stack = createStopStack(
    (part, error) => log.warn({ part, err: error }, "part failed to stop"),
    (part, ms) => log.debug({ part, ms }, "part stopped"),
    STOP_BUDGET_MS,
  );
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

/** This is one long function on purpose: every step needs the results of the earlier steps. */
async function build(options: AppOptions, stack: StopStack, stopping: AbortSignal): Promise<RunningApp> {
  const { config, log, onStep, terminal } = options;
  const begin = (step: string) => {
    stopping.throwIfAborted();
    onStep(step);
  };
  let routing = () => config.alerting.routing;
  const metrics = createMetrics(() => routing().zones);
  await checkDataFolder(config);
  keepOthersOut(config, log);
  if (config.roles.includes("http")) await checkPort(config);
  let httpUrl: string | null = null;
  const alerting = openAlerting({
    config,
    log,
    metrics,
    terminal,
    clock: systemClock,
    httpUrl: () => httpUrl,
  });
  routing = () => alerting.current().routing;
  const watch = openDatabaseWatch({ config, alerting, clock: systemClock, log }, stack);

  begin(config.databaseUrl === null ? "Starting embedded Postgres" : "Connecting to Postgres");
  const watched = { dataDir: config.dataDir, clock: systemClock, log, watch };
  const databaseUrl = await openPostgres(config, stack, () => createOutageReports(watched));
  try {
    if (config.databaseUrl !== null) await refuseServer(databaseUrl.reveal());
    await migrate({ url: databaseUrl.reveal() });
  } catch (thrown) {
    throw explainTlsFailure(thrown, "Postgres");
  }
  const database = createDatabase({
    url: databaseUrl.reveal(),
    max: 20,
    applicationName: WORK_SESSIONS,
    onError: reportLostConnections(log, "database connection lost"),
  });
  stack.defer("database", () => database.close());
  const clock = await openClock(database, log, stack, (error) => watchProbe(watch, error));
  let enqueuer: Enqueuer | undefined;
  const onKeyChange = () => enqueuer?.enqueue("report-service", {});
  const { keyring, checkKey } = await openKeyring({ config, database, log, onChange: onKeyChange }, stack);
  const fullDisk = createFullDiskNotice({
    ...watched,
    dataDir: config.databaseUrl === null ? config.dataDir : null,
  });
  stack.defer("full disk notice", () => fullDisk.stop());

  if (accountsOf(config).length === 0) begin("Starting the platform's emulator");
  const platform = await openPlatform(config, log, stack, stopping);
  const { zoneIds, accounts } = platform;
  const transport = openAccounts({
    databaseUrl,
    accounts,
    onWaited: (ms, priority) => metrics.edgeWait.observe({ priority }, ms / 1_000),
    onUnshared(error) {
      metrics.edgeBudgetLocal.set(error === null ? 0 : 1);
      if (error === null) log.info({}, "shared request budget recovered");
      else
        log.warn(
          { err: error, effect: "this process uses a quarter of the rate" },
          "shared request budget lost",
        );
    },
    onWarning: (warning) => log.warn({ warning }, "odd answer of the platform used"),
    onAttempt: (account, { operation, code }) =>
      metrics.edgeRequests.inc({ operation, outcome: code ?? "ok", ...labelAccount(accounts, account) }),
  });
  stack.defer("platform connections", () => transport.close());
  const edge = createEdgeClient(transport);
  const patientEdge = createEdgeClient(transport, "low");

  begin(`Starting jobs (queues in ${config.redisUrl === null ? "Postgres" : "Redis"})`);
  const settings = readSettings(config, platform);
  const storage = createStorage(config.archive, database.db);
  watchBucket({ database, storage, log }, stack);
  const store = openArchiveStore(storage, stack);
  const archive = config.archive.isWritten ? store : null;
  const rereadKey = createKeyReader(accounts, log);
  const recordHealth = rereadWhenRefused(recordPlatformHealth({ database, clock, log }), rereadKey);
  const watchedEdge = watchEdge(edge, recordHealth);
  const observer = measureIngest(metrics);
  const ingest = {
    database,
    clock,
    log,
    partitions: createPartitionKeeper(database),
    erasures: createErasureGuard(keyring.open, checkKey),
    observer,
  };
  const watchedPatientEdge = watchEdge(patientEdge, recordHealth);
  const lastRuns = new Map<string, LastRun>();
  const service = {
    ...viewService(config, accounts),
    alerting: alerting.current,
    configuredChannels: () => new Set(alerting.notifiers.keys()),
  };
  const verifyCrawler = createVerifyCrawler();
  const files = openReader(
    { database, storage, log },
    { duckdb: store.duckdb, scratch: temporaryFolder(storage.folder) },
  );
  const forwarding = openForwarding({ config, metrics, clock, queries: database, files });
  const jobs = createJobs({
    ...ingest,
    edge: watchedEdge,
    patientEdge: watchedPatientEdge,
    zoneIds,
    settings,
    executeRun: createExecuteRun({
      ...ingest,
      edge: watchedPatientEdge,
      afterPage: () => void enqueuer?.enqueue("roll-up-trends"),
      knownSources: alerting.knownSources,
      archive,
    }),
    digestChannels: () => alerting.current().digestChannels,
    readWeek: (week) =>
      readWeek({ db: database.db, now: clock(), caller: localCaller("Longwatch"), service }, week),
    heartbeat: openHeartbeat(config, systemClock),
    readDisk: service.readDisk,
    archive,
    readRequests: (...asked) => readRequests({ queries: database, files }, ...asked),
    forwarding,
    openKey: keyring.open,
    onDigest: (channel, messages) => metrics.digested.inc({ channel }, messages),
    notifiers: alerting.notifiers,
    routing: alerting.routing,
    sensitivity: alerting.sensitivity,
    lowestFloor: alerting.lowestFloor,
    settingsOf: alerting.settingsOf,
    verifyCrawler: async (ip) => (alerting.verifiesCrawlers() ? verifyCrawler(ip) : null),
    sourceMode: alerting.sourceMode,
    knownSources: alerting.knownSources,
    conditions: alerting.conditions,
    actions: config.alerting.actions,
    enqueue: (job, payload) => enqueuer?.enqueue(job, payload) ?? Promise.resolve(false),
  }).map((job) => fullDisk.watchJob(measureJob(job, metrics, { clock, lastRuns })));
  const destinations = [...(forwarding?.destinations.keys() ?? [])];
  const sizes = { zones: zoneIds.length, destinations: destinations.length };
  const queues = openQueues({ config, log, clock: systemClock, metrics, jobs, ...sizes, databaseUrl });
  enqueuer = queues.enqueuer;
  stack.defer("queues", () => queues.close(STOP_GRACE_MS));
  queues.start();

  const onFailure = (tick: string, error: Error) => {
    fullDisk.onFailure(error);
    log.warn({ tick, err: error }, "tick failed");
  };
  const entries = planEntries({ destinations, config, database, jobs, settings, zoneIds, enqueuer });
  const schedule = createSchedule({ entries, onError: onFailure });
  stack.defer("schedule", () => schedule.stop());
  stopping.throwIfAborted();
  schedule.start();

  await reportExcessRights(database, config, log);
  await auditConfig(database, config, alerting.current());
  const inUse = alerting;
  const servesHttp = config.roles.includes("http");
  const applyToStored = async () => {
    // A process without HTTP may lack `sign_in`.
    if (servesHttp) await grantSessions(database, () => inUse.current().signIn);
    const tooMany = await findTooManyInAll(database.db, inUse.knownSources(), { nowMs: clock() });
    if (tooMany !== null) log.warn(tooMany, "too many known sources found");
  };
  await applyToStored();
  const reload = () => {
    inUse.reload();
    rereadKey();
    applyToStored().catch((thrown) =>
      log.warn({ err: toError(thrown) }, "configuration file not applied to what is stored"),
    );
    auditConfig(database, config, inUse.current()).catch((thrown) =>
      log.warn({ err: toError(thrown) }, "settings not audited at start"),
    );
  };
  const parts = { config, log, metrics, database, databaseUrl, queues, clock, zoneIds, accounts };
  const openKey = keyring.open;
  const adminKey = servesHttp ? await openAdminKey(database, config.http.adminKey) : null;
  const openStores = async () => ({
    queries: openQueryPool(parts, stack),
    files: await openArchiveFiles({ ...parts, storage }, stack),
    keys: openKeys(parts, stack),
  });
  const asking = { database, edge: watchedEdge, clock, budgetPerHour: settings.advicePerHour };
  const askAdvice = config.adviceOnRequest ? createAskAdvice(asking) : null;
  httpUrl = servesHttp
    ? await openHttp(
        {
          ...parts,
          ...(await openStores()),
          alerting: inUse,
          askAdvice,
          edge: watchedPatientEdge,
          openKey,
          zones: () => inUse.current().routing.zones ?? {},
        },
        stack,
      )
    : null;
  writeRuntimeFile(config.dataDir, {
    pid: process.pid,
    databaseUrl: databaseUrl.reveal(),
    httpUrl,
    consoleUrl: config.consoleUrl,
    emulator: platform.isEmulated ? describeEmulator(accounts[0]) : null,
    configFile: config.file,
    settings: Object.fromEntries(config.settings.map(({ name, value }) => [name, value])),
  });
  stack.defer("runtime file", () => removeRuntimeFile(config.dataDir));
  const ticks = () =>
    Object.fromEntries(
      entries.map(({ name, expression }) => [name, { expression, lastRun: lastRuns.get(name) ?? null }]),
    );
  await openLifeSign({ config, database, log, zoneIds, ticks, version: readVersion() }, stack);
  log.info({ zoneIds, httpUrl, queues: queues.kind, emulated: platform.isEmulated }, "service started");
  return { database, edge, clock, platform, zoneIds, httpUrl, adminKey, reload };
}

function describeEmulator({ url, key, requestsPerSecond, zoneIds }: Platform["accounts"][0]) {
  return { url, accessKey: key.reveal(), requestsPerSecond, zones: [...zoneIds] };
}

/** Reports a failed query of the clock, which runs every minute: the database is down or does not answer. */
function watchProbe(watch: DatabaseWatch, error: unknown): void {
  if (error === null) return watch.recovered("probe");
  const why = describePostgresFailure(error) ?? messageOf(toError(error));
  const headline = `The database does not answer. No events are copied, and no spikes are detected. ${why}`;
  watch.failed("probe", { headline, isDiskFull: false });
}

/** Returns the times and limits of the jobs. */
function readSettings(config: Config, { isEmulated, accounts }: Platform): JobSettings {
  const { alerting, lastProofMs, advicePerHour, retention, archive, fallback } = config;
  const toPolled = ({ zoneIds, requestsPerSecond }: (typeof accounts)[number]) => ({
    zones: zoneIds.length,
    requestsPerSecond,
  });
  const tightest = findTightest(accounts.map(toPolled));
  const schedule = toSchedule(alerting.schedule, { isEmulated, ...tightest });
  const polls = readPauses(schedule["poll-events"]);
  return {
    schedule,
    ...planPeriods({ ...tightest, ...polls }),
    polled: accounts.map((account) => {
      const { mostPolls, risingRequests } = planPeriods({ ...toPolled(account), ...polls });
      return { zoneIds: account.zoneIds, mostPolls, risingRequests };
    }),
    lastProofMs,
    advicePerHour,
    retention,
    hotDays: archive.hotDays,
    archiveAfterMs: isEmulated ? archive.archiveAfterMs : null,
    fallback,
  };
}
