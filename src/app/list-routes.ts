import type { FastifyInstance } from "fastify";
import { readFeed, readFeedEnd } from "#db/alerting/feed-transitions.ts";
import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import type { Database, Queryable } from "#db/client.ts";
import { areWritersAtWork } from "#db/service/server-facts.ts";
import { createRowHub } from "#faces/http/feed/row-hub.ts";
import type { AdmissionQueue } from "#faces/http/limits/admission-queue.ts";
import { createRunInPlace } from "#faces/http/limits/run-in-place.ts";
import type { OperationParts } from "#faces/http/operations.ts";
import { addPlatform } from "#faces/http/routes/edge/add-platform.ts";
import type { PlatformDeps } from "#faces/http/routes/edge/platform-deps.ts";
import { addExportEvents } from "#faces/http/routes/v1/export-events.ts";
import { addNativeApi } from "#faces/http/routes/v1/native-api.ts";
import type { FeedDeps } from "#faces/http/routes/v1/open-alert-stream.ts";
import type { Log } from "#lib/log.ts";
import type { Searching } from "#operations/search/searching.ts";
import { createOpenedBlocks } from "#stages/archive/records/opened-blocks.ts";
import { openAdmissionQueue } from "./query-pool.ts";

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
  /** Returns whether costly searches must use less of the database. Default: looks at the sessions of the server. */
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
