import pino from "pino";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { createDatabase, type Database } from "#db/client.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { createJobs, type JobSettings, type JobsDeps } from "#jobs/index.ts";
import type { Clock } from "#lib/clock.ts";
import { createSecret } from "#lib/secret.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { toSchedule } from "#model/schedule.ts";
import { createErasureGuard } from "#people/rules/erasure-guard.ts";
import { createPseudonymKey } from "#people/rules/pseudonym.ts";
import { createEdgeClient, type EdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import { capabilitiesOf } from "../delivery/support/capabilities.ts";

export const ZONE = 101;

export const REPLICA_SETTINGS: JobSettings = {
  schedule: toSchedule(
    { "poll-events": "*/30 * * * * *" },
    { isEmulated: false, zones: 1, requestsPerSecond: 10 },
  ),
  pollEveryMs: 30_000,
  freshMs: 5_000,
  polled: [{ zoneIds: [ZONE], mostPolls: 1, risingRequests: 10 }],
  shortPassEveryMs: 90_000,
  lateEveryMs: 0,
  lastProofMs: 66 * 3_600_000,
  advicePerHour: 100,
  retention: { rawDays: 90, ipDays: 90, eventDays: 400, rollUpDays: 800 },
  hotDays: null,
  archiveAfterMs: null,
  fallback: null,
};

export interface ReplicaOptions {
  /** URLs of the database and of the platform. Either may lead through a proxy. */
  readonly databaseUrl: string;
  readonly platformUrl: string;
  readonly accessKey: string;
  readonly clock: Clock;
  readonly name?: string;
  /** Total time of one call of the platform. */
  readonly callTimeoutMs?: number;
  /** Called with every message that is sent. A throw is the channel's failure. */
  readonly onMessage?: (message: AlertMessage) => void;
  /** Wraps the client that the jobs use, for example to end the process there. */
  readonly wrapEdge?: (edge: EdgeClient) => EdgeClient;
  /** Called with the name of each job that another job enqueues. The job is not run. */
  readonly onEnqueue?: (job: string) => void;
  readonly wrapDatabase?: (database: Database) => Database;
}

export interface Replica {
  readonly database: Database;
  /** Names of the jobs in pipeline order. */
  readonly jobNames: readonly string[];
  /** Runs the job once; rejects as the job does. */
  run(job: string, signal?: AbortSignal): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}

/**
 * Returns every job of one service over real sockets, without the queue: no job is enqueued, so each must find its
 * own work.
 */
export function createReplica(options: ReplicaOptions): Replica {
  const { databaseUrl, accessKey, clock } = options;
  const connected = createDatabase({
    url: databaseUrl,
    max: 6,
    applicationName: options.name ?? "longwatch replica",
    onError: () => undefined,
    // Connections that are cut or stalled on purpose must not cost a minute of waiting.
    statementTimeoutMs: 5_000,
    lockTimeoutMs: 2_000,
    connectTimeoutMs: 2_000,
  });
  const database = options.wrapDatabase?.(connected) ?? connected;
  const transport = createEdgeTransport({
    baseUrl: options.platformUrl,
    accessKey: createSecret(accessKey),
    timeoutMs: options.callTimeoutMs ?? 5_000,
    sleep: async () => undefined,
  });
  const edge = createEdgeClient(transport);
  const key = createPseudonymKey(createSecret("the same for every replica of a test"));
  const openKey = async () => key;
  const deps: JobsDeps = {
    digestChannels: () => [],
    readWeek: () => Promise.reject(new Error("no digest here")),
    database,
    zoneIds: [ZONE],
    edge: options.wrapEdge?.(edge) ?? edge,
    patientEdge: options.wrapEdge?.(edge) ?? edge,
    clock,
    log: pino({ level: "silent" }),
    actions: BUILT_IN_ACTIONS,
    settings: REPLICA_SETTINGS,
    partitions: createPartitionKeeper(database),
    openKey,
    erasures: createErasureGuard(openKey),
    observer: { pageStored: () => undefined },
    routing: () => routeToAll(["pager"]),
    sensitivity: () => ({ z: 6, floor: 10 }),
    lowestFloor: () => 10,
    knownSources: () => [],
    conditions: () => [],
    settingsOf: () => "settings",
    sourceMode: () => "on",
    notifiers: new Map([["pager", createRecordingNotifier(options.onMessage)]]),
    onDigest: () => undefined,
    enqueue: async (job) => {
      options.onEnqueue?.(job);
      return true;
    },
  };
  const jobs = createJobs(deps);
  const close = async () => {
    await transport.close();
    await connected.close();
  };
  let closed: Promise<void> | undefined;
  return {
    database,
    jobNames: jobs.map(({ name }) => name),
    async run(name, signal = new AbortController().signal) {
      const job = jobs.find((job) => job.name === name);
      if (job === undefined) throw new Error(`there is no job ${name}`);
      const payload = job.payload.safeParse({ zoneId: ZONE }).success ? { zoneId: ZONE } : {};
      await job.run(payload as never, signal);
    },
    close: () => (closed ??= close()),
  };
}

function createRecordingNotifier(onMessage: ReplicaOptions["onMessage"]): Notifier {
  return {
    name: "pager",
    kind: "webhook",
    capabilities: capabilitiesOf("webhook"),
    async send(message) {
      onMessage?.(message);
      return { providerReference: null };
    },
  };
}
