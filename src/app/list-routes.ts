import type { FastifyInstance } from "fastify";
import type { Database } from "../../db/client.ts";
import type { PageCursors } from "../http/page-cursor.ts";
import type { RefuseCostly } from "../http/refuse-costly.ts";
import { addListApiKeys } from "../http/routes/platform/list-api-keys.ts";
import type { ApiDeps } from "../http/routes/v1/api-deps.ts";
import { addKeys } from "../http/routes/v1/keys.ts";
import { addNativeApi } from "../http/routes/v1/native-api.ts";

export interface RouteParts {
  /** What questions of clients are answered from. */
  readonly archive: Database;
  /** What keys are kept in. */
  readonly keys: Database;
  readonly cursors: PageCursors;
  readonly refuseCostly: RefuseCostly;
  readonly api: ApiDeps;
}

/** Every route that takes a key, each with what it needs. */
export function listRoutes({ archive, keys, cursors, api }: RouteParts): ((app: FastifyInstance) => void)[] {
  return [
    (app) => addListApiKeys(app, { archive: archive.db }),
    (app) => addKeys(app, { archive: archive.db, keys, cursors }),
    (app) => addNativeApi(app, api),
  ];
}
