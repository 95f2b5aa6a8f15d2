import type { FastifyInstance } from "fastify";
import type { ArchiveReader } from "../../db/archive/archive-reader.ts";
import type { Database } from "../../db/client.ts";
import { areWritersAtWork } from "../../db/ingest/writers.ts";
import { writeAuditEntry } from "../../db/keys/audit-entries.ts";
import { createOpenedBlocks } from "../archive/records/opened-blocks.ts";
import { createAuditExport } from "../http/keys/audit-export.ts";
import type { AdmissionQueue } from "../http/limits/admission-queue.ts";
import type { RefuseCostly } from "../http/limits/refuse-costly.ts";
import { createRunInPlace } from "../http/limits/run-in-place.ts";
import type { PageCursors } from "../http/page-cursor.ts";
import { addPlatform } from "../http/routes/edge/add-platform.ts";
import { addListApiKeys } from "../http/routes/edge/list-api-keys.ts";
import type { AskAdvice } from "../http/routes/edge/platform-deps.ts";
import type { ApiDeps } from "../http/routes/v1/api-deps.ts";
import { addKeys } from "../http/routes/v1/keys.ts";
import { addNativeApi } from "../http/routes/v1/native-api.ts";
import { addSavedViews } from "../http/routes/v1/saved-views.ts";
import { addSearchEvents } from "../http/routes/v1/search-events.ts";
import { addSessions } from "../http/routes/v1/sessions.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
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
  readonly api: ApiDeps;
  /** Default: one by the number of connections. */
  readonly queue?: AdmissionQueue;
  /** Whether costly searches must step back. Default: what the sessions of the server say. */
  readonly isIngestBusy?: () => Promise<boolean>;
  /** How often an export asks whether its key is still good. Default 10 s. */
  readonly checkKeyEveryMs?: number;
}

/** Every route that takes a key, each with what it needs. */
export function listRoutes(parts: RouteParts): ((app: FastifyInstance) => void)[] {
  const { archive, keys, cursors, api } = parts;
  const openedBlocks = createOpenedBlocks(OPENED_BLOCKS_BYTES);
  const auditExport = createAuditExport((entry) => writeAuditEntry(keys.db, entry), systemClock);
  const isIngestBusy = parts.isIngestBusy ?? (() => areWritersAtWork(archive.db));
  const queue = parts.queue ?? openAdmissionQueue(archive);
  const runInPlace = createRunInPlace({ archive, files: parts.files, queue, isIngestBusy });
  const searching = { ...parts, openedBlocks, auditExport, runInPlace };
  return [
    (app) => addPlatform(app, searching),
    (app) => addSearchEvents(app, searching),
    (app) => addListApiKeys(app, { archive: archive.db }),
    (app) => addKeys(app, { archive: archive.db, keys, cursors }),
    (app) => addSessions(app, { keys }),
    (app) => addSavedViews(app, { keys, cursors }),
    (app) => addNativeApi(app, api),
  ];
}
