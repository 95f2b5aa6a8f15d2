import { randomBytes } from "node:crypto";
import { onTestFinished } from "vitest";
import { type ApiParts, listRoutes, openApi, type RouteParts } from "#app/list-routes.ts";
import { openKeys, openSessions } from "#app/open-keys.ts";
import { openPeople } from "#app/open-people.ts";
import { createDatabase, type Database } from "#db/client.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { readServerSecret } from "#db/service/server-secrets.ts";
import type { HttpOptions } from "#faces/http/http.ts";
import { createRefuseCostly } from "#faces/http/limits/refuse-costly.ts";
import type { ApiDeps } from "#faces/http/routes/v1/api-deps.ts";
import { systemClock } from "#lib/clock.ts";
import { createLog } from "#lib/log.ts";
import { createSecret } from "#lib/secret.ts";
import { createStopStack } from "#lib/stop-stack.ts";
import type { Role } from "#model/kinds.ts";
import { createPageCursors } from "#operations/page-cursor.ts";
import { issueKey } from "#test/support/issue-key.ts";
import { openTestFolder } from "../archive/archive-folder.ts";
import { SERVICE } from "./default-service.ts";
import { startHttp } from "./start-http.ts";

/** A replica of the service's HTTP with its real routes and keys, on this database. */
export async function startArchive(
  url: string,
  options: Partial<HttpOptions> = {},
  api: Partial<
    Pick<ApiDeps, "clock" | "heartbeatMs" | "service" | "streamsPerKey" | "zones"> &
      Pick<ApiParts, "feedPollMs" | "edge">
  > = {},
  more: Partial<RouteParts> = {},
) {
  const lines: string[] = [];
  const log = createLog({ level: "debug", stream: { write: (line) => lines.push(line) } });
  const stack = createStopStack(() => undefined);
  const keys = openKeys({ databaseUrl: createSecret(url), log }, stack);
  const queries = createDatabase({ url, max: 2, applicationName: "test queries", onError: () => undefined });
  const cursors = createPageCursors(
    await readServerSecret(keys.database.db, "page-cursors", randomBytes(32)),
  );
  const { feedPollMs = 20, edge = null, ...given } = api;
  const parts = { database: keys.database, queries, clock: systemClock, cursors, log, service: SERVICE };
  const routes = listRoutes({
    queries,
    files: more.files ?? (await openTestFolder()).files,
    api: { ...(await openApi({ ...parts, feedPollMs, edge })), ...given },
    keys: keys.database,
    cursors,
    refuseCostly: createRefuseCostly(1_000),
    clock: systemClock,
    zoneIds: [],
    retentionDays: 400,
    askAdvice: null,
    ...more,
  });
  const http = await startHttp({
    log,
    authenticate: keys.authenticate,
    sessions: openSessions(keys.database, log),
    people: openPeople({ settings: () => null, publicUrl: null }),
    areMetricsPublic: false,
    writeSecurityEvent: (event) => writeAuditEntry(keys.database.db, event),
    ...options,
    routes: [...(options.routes ?? []), ...routes],
  });
  onTestFinished(async () => {
    await http.app.close();
    await queries.close();
    await stack.stop();
  });
  return { ...http, lines };
}

/** A new key of this role. */
export async function makeKey(
  database: Database,
  role: Role,
  more: { zoneIds?: number[]; name?: string; isMasked?: boolean } = {},
) {
  const wanted = {
    name: more.name ?? role,
    role,
    zoneIds: more.zoneIds ?? null,
    isMasked: more.isMasked ?? false,
    expiresInMs: null,
  };
  const { key, listed } = await issueKey(database, wanted, "test");
  return { key: key.reveal(), keyId: listed.keyId };
}

export function call(url: string, path: string, key?: string, init: RequestInit = {}): Promise<Response> {
  const headers = {
    ...(init.body === undefined ? {} : { "content-type": "application/json" }),
    ...(key === undefined ? {} : { AccessKey: key }),
    ...(init.headers as Record<string, string> | undefined),
  };
  return fetch(`${url}${path}`, { ...init, headers });
}
