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

/** Of records that were opened for searches and lists, for those that turn their pages. */
const OPENED_BLOCKS_BYTES = 33_554_432;

export interface RouteParts {
  /** What questions of clients are answered from. */
  readonly archive: Database;
  /** The files of archive days. */
  readonly files: ArchiveReader;
  /** What keys are kept in. */
  readonly keys: Database;
  readonly cursors: PageCursors;
  readonly refuseCostly: RefuseCostly;
  readonly clock: Clock;
  /** The zones that are copied. */
  readonly zoneIds: readonly number[];
  readonly retentionDays: number;
  /** Null where the platform is not asked for advice on a client's behalf. */
  readonly askAdvice: AskAdvice | null;
  readonly api: Omit<ApiDeps, "searching">;
  /** Default: one by the number of connections. */
  readonly queue?: AdmissionQueue;
  /** Whether costly searches must step back. Default: what the sessions of the server say. */
  readonly isIngestBusy?: () => Promise<boolean>;
  /** How often an export asks whether its key is still good. Default 10 s. */
  readonly checkKeyEveryMs?: number;
}

/** Every route that takes a key, each with what it needs. */
export function listRoutes(parts: RouteParts): ((app: FastifyInstance) => void)[] {
  const { archive, keys, api } = parts;
  const openedBlocks = createOpenedBlocks(OPENED_BLOCKS_BYTES);
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
