import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { readFeed, readFeedEnd } from "#db/alerting/feed-transitions.ts";
import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import type { Database } from "#db/client.ts";
import { areWritersAtWork } from "#db/ingest/writers.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { readServerSecret } from "#db/service/server-secrets.ts";
import { createRowHub } from "#faces/http/feed/row-hub.ts";
import { createAuditExport } from "#faces/http/keys/audit-export.ts";
import type { AdmissionQueue } from "#faces/http/limits/admission-queue.ts";
import type { RefuseCostly } from "#faces/http/limits/refuse-costly.ts";
import { createRunInPlace } from "#faces/http/limits/run-in-place.ts";
import { addPlatform } from "#faces/http/routes/edge/add-platform.ts";
import type { AskAdvice } from "#faces/http/routes/edge/platform-deps.ts";
import type { ApiDeps } from "#faces/http/routes/v1/api-deps.ts";
import { addExportEvents } from "#faces/http/routes/v1/export-events.ts";
import { addNativeApi } from "#faces/http/routes/v1/native-api.ts";
import { type Clock, systemClock } from "#lib/clock.ts";
import type { PageCursors } from "#operations/page-cursor.ts";
import { createOpenedBlocks } from "#stages/archive/records/opened-blocks.ts";
import { openAdmissionQueue } from "./query-pool.ts";

export interface RouteParts {
  /** Connections for the queries of clients. */
  readonly queries: Database;
  /** The files of archive days. */
  readonly files: ArchiveReader;
  /** Connections for keys. */
  readonly keys: Database;
  readonly cursors: PageCursors;
  readonly refuseCostly: RefuseCostly;
  readonly clock: Clock;
  /** The zones that are copied. */
  readonly zoneIds: readonly number[];
  readonly retentionDays: number;
  readonly vendor?: string | null;
  /** Null if the platform may not be asked for a client. */
  readonly askAdvice: AskAdvice | null;
  readonly api: Omit<ApiDeps, "searching">;
  /** Default: one by the number of connections. */
  readonly queue?: AdmissionQueue;
  /** Returns whether costly searches must use less of the database. Default: looks at the sessions of the server. */
  readonly isIngestBusy?: () => Promise<boolean>;
  /** Interval at which an export checks that its key is still valid. Default 10 s. */
  readonly checkKeyEveryMs?: number;
}

/** Returns functions that add every route that takes a key. */
export function listRoutes(parts: RouteParts): ((app: FastifyInstance) => void)[] {
  const { queries, keys, api } = parts;
  const openedBlocks = createOpenedBlocks();
  const auditExport = createAuditExport((entry) => writeAuditEntry(keys.db, entry), systemClock);
  const isIngestBusy = parts.isIngestBusy ?? (() => areWritersAtWork(queries.db));
  const queue = parts.queue ?? openAdmissionQueue(queries);
  const runInPlace = createRunInPlace({ queries, files: parts.files, queue, isIngestBusy });
  const searching = { ...parts, openedBlocks, auditExport, runInPlace };
  return [
    (app) => addPlatform(app, searching),
    (app) => addExportEvents(app, searching),
    (app) => addNativeApi(app, { ...api, searching }),
  ];
}

/** Maximum delay of a transition in the stream. */
const FEED_POLL_MS = 1_000;

export interface ApiParts
  extends Pick<ApiDeps, "clock" | "cursors" | "database" | "log" | "service">,
    Partial<Pick<ApiDeps, "edge" | "enqueue" | "zones">> {
  readonly queries: Database;
  /** Default 1 s. */
  readonly feedPollMs?: number;
}

/**
 * Returns the parts that the native API needs. By default no zone has a name, the platform is not asked, and the sweep
 * finds requested work.
 */
export async function openApi(parts: ApiParts): Promise<Omit<ApiDeps, "searching">> {
  const { feedPollMs = FEED_POLL_MS, queries, ...given } = parts;
  const { db } = queries;
  const instance = await readServerSecret(given.database.db, "instance-id", randomBytes(8));
  return {
    zones: () => ({}),
    enqueue: async () => false,
    edge: null,
    ...given,
    db,
    instanceId: instance.toString("hex"),
    hub: createRowHub({
      pollEveryMs: feedPollMs,
      readEnd: () => readFeedEnd(db),
      read: (after, limit) => readFeed(db, { after, limit, zoneIds: null }),
      onError: (error) => given.log.warn({ err: error }, "alert feed not read"),
    }),
  };
}
