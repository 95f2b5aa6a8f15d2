import type { FastifyInstance } from "fastify";
import type { Database } from "../../db/client.ts";
import { writeAuditEntry } from "../../db/queries/audit-entries.ts";
import { areWritersAtWork } from "../../db/queries/writers.ts";
import { createOpenedBlocks } from "../archive/opened-blocks.ts";
import { type Clock, systemClock } from "../clock.ts";
import { createAuditExport } from "../http/audit-export.ts";
import { createCostlyGate } from "../http/costly-gate.ts";
import type { PageCursors } from "../http/page-cursor.ts";
import type { RefuseCostly } from "../http/refuse-costly.ts";
import { addPlatform } from "../http/routes/platform/add-platform.ts";
import { addListApiKeys } from "../http/routes/platform/list-api-keys.ts";
import type { AskAdvice } from "../http/routes/platform/platform-deps.ts";
import type { ApiDeps } from "../http/routes/v1/api-deps.ts";
import { addKeys } from "../http/routes/v1/keys.ts";
import { addNativeApi } from "../http/routes/v1/native-api.ts";
import { createTakeTurn } from "../http/take-turn.ts";

/** Of records that were opened for searches and lists, for those that turn their pages. */
const OPENED_BLOCKS_BYTES = 33_554_432;

/** The longest that a costly search waits for its turn: with the time it may take itself, about as long as clients wait. */
const MAX_WAIT_MS = 15_000;

export interface RouteParts {
  /** What questions of clients are answered from. */
  readonly archive: Database;
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
  /** Whether costly searches must step back. Default: what the sessions of the server say. */
  readonly isIngestBusy?: () => Promise<boolean>;
}

/** Every route that takes a key, each with what it needs. */
export function listRoutes(parts: RouteParts): ((app: FastifyInstance) => void)[] {
  const { archive, keys, cursors, api } = parts;
  const openedBlocks = createOpenedBlocks(OPENED_BLOCKS_BYTES);
  const auditExport = createAuditExport((entry) => writeAuditEntry(keys.db, entry), systemClock);
  const isIngestBusy = parts.isIngestBusy ?? (() => areWritersAtWork(archive.db));
  const takeTurn = createTakeTurn({ archive, gate: openGate(archive), isIngestBusy });
  return [
    (app) => addPlatform(app, { ...parts, openedBlocks, auditExport, takeTurn }),
    (app) => addListApiKeys(app, { archive: archive.db }),
    (app) => addKeys(app, { archive: archive.db, keys, cursors }),
    (app) => addNativeApi(app, api),
  ];
}

/** A third of the connections for costly searches: cheap ones, lists and exports never lack one because of them. */
function openGate({ pool: { options } }: Database) {
  const { max } = options;
  return createCostlyGate({
    places: Math.max(1, Math.floor(max / 3)),
    perKey: Math.max(1, max - 2),
    waiting: max * 2,
    maxWaitMs: MAX_WAIT_MS,
  });
}
