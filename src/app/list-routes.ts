import type { FastifyInstance } from "fastify";
import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import type { Database } from "#db/client.ts";
import { areWritersAtWork } from "#db/ingest/writers.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { createAuditExport } from "#faces/http/keys/audit-export.ts";
import type { AdmissionQueue } from "#faces/http/limits/admission-queue.ts";
import type { RefuseCostly } from "#faces/http/limits/refuse-costly.ts";
import { createRunInPlace } from "#faces/http/limits/run-in-place.ts";
import { addPlatform } from "#faces/http/routes/edge/add-platform.ts";
import { addListApiKeys } from "#faces/http/routes/edge/list-api-keys.ts";
import type { AskAdvice } from "#faces/http/routes/edge/platform-deps.ts";
import type { ApiDeps } from "#faces/http/routes/v1/api-deps.ts";
import { addExportEvents } from "#faces/http/routes/v1/export-events.ts";
import { addNativeApi } from "#faces/http/routes/v1/native-api.ts";
import { type Clock, systemClock } from "#lib/clock.ts";
import type { PageCursors } from "#operations/page-cursor.ts";
import { createOpenedBlocks } from "#stages/archive/records/opened-blocks.ts";
import { openAdmissionQueue } from "./open-admission-queue.ts";

export interface RouteParts {
  /** Connections for the queries of clients. */
  readonly archive: Database;
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
  const { archive, keys, api } = parts;
  const openedBlocks = createOpenedBlocks();
  const auditExport = createAuditExport((entry) => writeAuditEntry(keys.db, entry), systemClock);
  const isIngestBusy = parts.isIngestBusy ?? (() => areWritersAtWork(archive.db));
  const queue = parts.queue ?? openAdmissionQueue(archive);
  const runInPlace = createRunInPlace({ archive, files: parts.files, queue, isIngestBusy });
  const searching = { ...parts, openedBlocks, auditExport, runInPlace };
  return [
    (app) => addPlatform(app, searching),
    (app) => addExportEvents(app, searching),
    (app) => addListApiKeys(app, { archive: archive.db }),
    (app) => addNativeApi(app, { ...api, searching }),
  ];
}
