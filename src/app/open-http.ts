import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";
import type { Config } from "#config/config.ts";
import type { Account } from "#config/file/accounts-entry.ts";
import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import type { Database } from "#db/client.ts";
import { readServerSecret } from "#db/health/server-facts.ts";
import { listLiveKeyHashes } from "#db/people/api-keys.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { readBacklog } from "#faces/http/backlog.ts";
import { createHttp } from "#faces/http/http.ts";
import { MAX_GOOD_KEYS } from "#faces/http/keys/authenticate.ts";
import { createRefuseCostly } from "#faces/http/limits/refuse.ts";
import type { Metrics } from "#faces/http/metrics.ts";
import { type AskAdvice, createAuditExport } from "#faces/http/routes/edge/platform.ts";
import { listReadyChecks } from "#health/service/attention.ts";
import type { JobContext } from "#jobs/context.ts";
import { systemClock } from "#lib/clock.ts";
import { UsageError } from "#lib/errors.ts";
import type { StopStack } from "#lib/process.ts";
import type { Zones } from "#model/zones.ts";
import { type Changing, createPageCursors } from "#operations/operation.ts";
import type { ServiceView } from "#operations/service-life.ts";
import { createErasureGuard } from "#people/rules/erasure-guard.ts";
import { listRoutes, openAdmissionQueue, openFeed, openSearching } from "./list-routes.ts";
import type { OpenAlerting } from "./open-alerting.ts";
import { type OpenKeys, openSessions } from "./open-keys.ts";
import { openPeople } from "./open-people.ts";
import type { OpenQueues } from "./open-queues.ts";
import { readRuntimeFile } from "./runtime-file.ts";
import { viewSettings } from "./view-service.ts";

export interface OpenHttpParts
  extends Pick<JobContext, "log" | "database" | "clock" | "openKey" | "zoneIds"> {
  readonly config: Pick<
    Config,
    | "http"
    | "archive"
    | "retention"
    | "databaseUrl"
    | "dataDir"
    | "settings"
    | "pollEveryMs"
    | "alerting"
    | "platformVendor"
  >;
  readonly metrics: Metrics;
  /** Connections for the queries of clients. */
  readonly queries: Database;
  /** The files of archive days. */
  readonly files: ArchiveReader;
  readonly keys: OpenKeys;
  readonly queues: Pick<OpenQueues, "check" | "enqueuer">;
  readonly alerting: Pick<OpenAlerting, "current" | "notifiers">;
  /** Returns the current names and labels. */
  readonly zones: () => Zones;
  readonly accounts: readonly Account[];
  readonly askAdvice: AskAdvice | null;
  readonly edge: NonNullable<Changing["edge"]>;
}

/** The folder to which `npm run build:console` writes. */
const CONSOLE_FOLDER = fileURLToPath(new URL("../../dist/console", import.meta.url));

/** Time that a request may take besides its long query: waiting for its turn, and short statements. */
const BESIDE_QUERY_MS = 30_000;

/**
 * Starts to listen, and returns the URL.
 * @throws {UsageError} if the port is taken, or the host is not an address of this machine
 */
export async function openHttp(parts: OpenHttpParts, stack: StopStack): Promise<string> {
  const { config, log, metrics, database, queries, keys, queues } = parts;
  const instance = await readServerSecret(database.db, "instance-id", randomBytes(8));
  const signIn = () => parts.alerting.current().signIn;
  const service: ServiceView = {
    alerting: parts.alerting.current,
    configuredChannels: () => new Set(parts.alerting.current().channels.map(({ name }) => name)),
    zoneIds: parts.zoneIds,
    notifiers: parts.alerting.notifiers,
    ...viewSettings(config, parts.accounts),
    readJobRuns: () => metrics.readJobRuns(),
  };
  const ask = () => ({ db: database.db, now: parts.clock(), service });
  const http = await createHttp({
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
      { name: "queues", isRequired: false, check: () => queues.check() },
      ...listReadyChecks(ask, parts.zoneIds),
    ],
    handlerTimeoutMs: config.http.queryTimeoutMs + BESIDE_QUERY_MS,
    readBacklog: () => readBacklog({ ...ask(), zoneIds: parts.zoneIds, openKey: parts.openKey }),
    areMetricsPublic: config.http.areMetricsPublic,
    authenticate: keys.authenticate,
    consoleFolder: CONSOLE_FOLDER,
    publicUrl: config.http.publicUrl,
    actions: config.alerting.actions.own,
    ownHosts: [config.http.host],
    sessions: openSessions(keys, log, signIn),
    people: openPeople({
      settings: signIn,
      publicUrl: config.http.publicUrl,
    }),
    knownKeys: await listLiveKeyHashes(keys.database.db, MAX_GOOD_KEYS),
    trustedProxies: config.http.trustedProxies,
    limits: toLimits(config.http),
    writeSecurityEvent: (event) => writeAuditEntry(keys.database.db, event),
    routes: listRoutes(
      {
        database,
        db: queries.db,
        clock: parts.clock,
        cursors: createPageCursors(await readServerSecret(database.db, "page-cursors", randomBytes(32))),
        zones: parts.zones,
        log,
        edge: parts.edge,
        erasures: createErasureGuard(parts.openKey),
        enqueue: (job, payload) => queues.enqueuer.enqueue(job, payload),
        service,
        searching: openSearching({
          queries,
          files: parts.files,
          queue: openAdmissionQueue(queries, { cpuMsPerMinute: config.http.keyCpuMsPerMinute }),
          refuseCostly: createRefuseCostly(config.http.queryMaxRows),
          ocsf: { vendor: config.platformVendor, actions: config.alerting.actions },
        }),
        instanceId: instance.toString("hex"),
        auditExport: createAuditExport((entry) => writeAuditEntry(keys.database.db, entry), systemClock),
        askAdvice: parts.askAdvice,
      },
      openFeed(queries.db, log),
    ),
  });
  stack.defer("http", () => closeHttp(http));
  try {
    return await http.listen({ host: config.http.host, port: config.http.port });
  } catch (thrown) {
    throw explainListenFailure(thrown, config);
  }
}

function toLimits({ keyRequestsPerMinute, addressRequestsPerMinute, queryConnections }: Config["http"]) {
  return {
    perKeyAndMinute: keyRequestsPerMinute,
    perAddressAndMinute: addressRequestsPerMinute,
    perKey: { read: Math.max(1, queryConnections - 2), export: 2 },
  };
}

/** Grace period for requests in progress when the service stops. */
const ANSWER_GRACE_MS = 2_000;

/**
 * Accepts no more requests and waits for those in progress until the grace period ends. Then it cuts their connections,
 * which also makes Postgres cancel their queries. A search may take longer than a stop should.
 */
export async function closeHttp(http: FastifyInstance, graceMs = ANSWER_GRACE_MS): Promise<void> {
  const cut = setTimeout(() => http.server.closeAllConnections(), graceMs);
  try {
    await http.close();
  } finally {
    clearTimeout(cut);
  }
}

type Place = Pick<Config, "dataDir"> & { readonly http: Pick<Config["http"], "host" | "port"> };

/**
 * Listens on the port of HTTP and stops at once, so that a start that must fail does so before Postgres is started.
 * @throws {UsageError} if the port is taken, or the host is not an address of this machine
 */
export async function checkPort(config: Place): Promise<void> {
  const { host, port } = config.http;
  if (port === 0) return;
  const server = createServer((socket) => socket.destroy());
  try {
    await once(server.listen({ host, port }), "listening");
  } catch (thrown) {
    throw explainListenFailure(thrown, config);
  }
  await new Promise((resolve) => server.close(resolve));
}

/** Returns the failure as a mistake of the settings if the settings caused it. */
function explainListenFailure(thrown: unknown, { http, dataDir }: Place): unknown {
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  if (["ENOTFOUND", "EAI_AGAIN", "EADDRNOTAVAIL"].includes(code))
    return new UsageError([`LONGWATCH_HOST: ${http.host}: must be an address of this machine`]);
  if (code === "EACCES")
    return new UsageError([`LONGWATCH_PORT: ${http.port}: must be a port that this user may listen on`]);
  if (code !== "EADDRINUSE") return thrown;
  const running = readRuntimeFile(dataDir);
  const isOurs = URL.parse(running?.httpUrl ?? "")?.port === String(http.port);
  const who = isOurs ? `the service of process ${running?.pid}` : "another program";
  return new UsageError([`LONGWATCH_PORT: ${http.port}: must be free: ${who} listens there`]);
}
