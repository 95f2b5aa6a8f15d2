/** The routes of the API, and the pool of connections for their questions. */
import type { FastifyInstance } from "fastify";
import { createOpenedBlocks } from "#archive/rules/records/find-records.ts";
import type { Searching } from "#archive/search/searching.ts";
import type { Config } from "#config/config.ts";
import { readFeed, readFeedEnd } from "#db/alerts/feed-transitions.ts";
import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import { createDatabase, type Database, type Queryable } from "#db/client.ts";
import { areWritersAtWork } from "#db/health/server-facts.ts";
import { createRowHub } from "#faces/http/feed/feed.ts";
import {
  type AdmissionQueue,
  createAdmissionQueue,
  createRunInPlace,
} from "#faces/http/limits/admission-queue.ts";
import type { OperationParts } from "#faces/http/operations.ts";
import { addPlatform } from "#faces/http/routes/edge/add-platform.ts";
import type { PlatformDeps } from "#faces/http/routes/edge/platform.ts";
import type { FeedDeps } from "#faces/http/routes/v1/alert-stream.ts";
import { addExportEvents, addNativeApi } from "#faces/http/routes/v1/native-api.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/process.ts";
import type { Secret } from "#lib/secret.ts";
import { reportLostConnections } from "./report-outages.ts";

/** Returns functions that add every route that takes a key. */
export function listRoutes(
  parts: OperationParts & PlatformDeps,
  feed: FeedDeps,
): ((app: FastifyInstance) => void)[] {
  return [
    (app) => addPlatform(app, parts),
    (app) => addExportEvents(app, parts),
    (app) => addNativeApi(app, parts, feed),
  ];
}

interface SearchingOptions extends Pick<Searching, "refuseCostly" | "ocsf"> {
  /** Connections for the queries of clients. */
  readonly queries: Database;
  /** The files of archive days. */
  readonly files: ArchiveReader;
  /** Default: one by the number of connections. */
  readonly queue?: AdmissionQueue;
  /** Returns whether costly searches must use less of the database. Default: decides by the sessions of the server. */
  readonly isIngestBusy?: () => Promise<boolean>;
}

/** Returns the means to read many events, for a client whose turn it is. */
export function openSearching(options: SearchingOptions): Searching {
  const { queries, files, refuseCostly, ocsf } = options;
  const { queue = openAdmissionQueue(queries), isIngestBusy = () => areWritersAtWork(queries.db) } = options;
  const runInPlace = createRunInPlace({ queries, files, queue, isIngestBusy });
  return { openedBlocks: createOpenedBlocks(), refuseCostly, ocsf, runInPlace };
}

/** Maximum delay of a transition in the stream. */
const FEED_POLL_MS = 1_000;

/** Returns the source of the stream of alerts. */
export function openFeed(db: Queryable, log: Pick<Log, "warn">, pollEveryMs = FEED_POLL_MS): FeedDeps {
  return {
    db,
    hub: createRowHub({
      pollEveryMs,
      readEnd: () => readFeedEnd(db),
      read: (after, limit) => readFeed(db, { after, limit, zoneIds: null }),
      onError: (error) => log.warn({ err: error }, "alert feed not read"),
    }),
  };
}

interface QueryPoolParts {
  readonly config: Pick<Config, "http">;
  readonly databaseUrl: Secret;
  readonly log: Log;
}

/** The first search of a new connection plans over every day's partition, which takes about ten milliseconds. */
const IDLE_TIMEOUT_MS = 10 * 60_000;

/**
 * Opens a few connections for HTTP requests only, with a time limit for each statement. Expensive searches share these
 * connections, so ingest never waits for a search.
 */
export function openQueryPool({ config, databaseUrl, log }: QueryPoolParts, stack: StopStack): Database {
  const queries = createDatabase({
    url: databaseUrl.reveal(),
    max: config.http.queryConnections,
    applicationName: "longwatch queries",
    statementTimeoutMs: config.http.queryTimeoutMs,
    idleInTransactionTimeoutMs: config.http.queryTimeoutMs,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    onError: reportLostConnections(log, "query connection lost"),
  });
  stack.defer("queries", () => queries.close());
  return queries;
}

/** Time limit of the wait. Together with the search's own time limit it is about as long as clients wait. */
const MAX_WAIT_MS = 15_000;
/** A quarter of a machine with two cores. */
const CPU_MS_PER_MINUTE = 30_000;

/**
 * Opens the queue. Quick work gets half of the connections, so that one key can run two requests at a time. Long work
 * gets a third.
 */
export function openAdmissionQueue(
  { pool: { options } }: Pick<Database, "pool">,
  { maxWaitMs = MAX_WAIT_MS, cpuMsPerMinute = CPU_MS_PER_MINUTE } = {},
): AdmissionQueue {
  const { max } = options;
  return createAdmissionQueue({
    places: { quick: Math.max(3, Math.floor(max / 2)), long: Math.max(2, Math.floor(max / 3)) },
    perKey: { quick: max * 2, long: max * 2 },
    maxWaitMs,
    cpuMsPerMinute,
  });
}
