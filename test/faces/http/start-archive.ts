import { randomBytes } from "node:crypto";
import { listRoutes, openFeed, openSearching } from "#app/list-routes.ts";
import { openKeys, openSessions } from "#app/open-keys.ts";
import { openPeople } from "#app/open-people.ts";
import type { SignIn } from "#config/file/sign-in-entry.ts";
import { createDatabase, type Database } from "#db/client.ts";
import { readServerSecret } from "#db/health/server-facts.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import type { HttpOptions } from "#faces/http/http.ts";
import { createRefuseCostly } from "#faces/http/limits/refuse.ts";
import type { OperationParts } from "#faces/http/operations.ts";
import { createAuditExport, type PlatformDeps } from "#faces/http/routes/edge/platform.ts";
import type { FeedDeps } from "#faces/http/routes/v1/alert-stream.ts";
import { systemClock } from "#lib/clock.ts";
import { createLog } from "#lib/log.ts";
import { createStopStack } from "#lib/process.ts";
import { createSecret } from "#lib/secret.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import type { Role } from "#model/kinds.ts";
import { createPageCursors } from "#operations/operation.ts";
import { atEnd } from "#test/support/at-end.ts";
import { issueKey } from "#test/support/issue-key.ts";
import { openTestFolder } from "../../archive/archive-folder.ts";
import { SERVICE } from "./default-service.ts";
import { startHttp } from "./start-http.ts";

interface ApiOptions
  extends Partial<Pick<OperationParts, "clock" | "service" | "zones" | "edge">>,
    Partial<Pick<FeedDeps, "heartbeatMs" | "streamsPerKey">> {
  readonly feedPollMs?: number;
}

export interface SearchOptions
  extends Partial<Parameters<typeof openSearching>[0]>,
    Partial<Pick<PlatformDeps, "askAdvice" | "checkKeyEveryMs" | "clock">> {
  /** The zones that are copied. */
  readonly zoneIds?: readonly number[];
  /** How long events are kept. */
  readonly retentionDays?: number;
}

/**
 * The connections for questions by address of their database. A file starts many servers on one database, and a new session costs
 * as much as the rest of a server. The drop of the database ends them.
 */
const pools = new Map<string, Database>();

function openQueries(url: string): Database {
  const known = pools.get(url);
  if (known !== undefined) return known;
  const own = createDatabase({ url, max: 2, applicationName: "test queries", onError: () => undefined });
  pools.set(url, own);
  return own;
}

/** A replica of the service's HTTP with its real routes and keys, on this database. */
export async function startArchive(
  url: string,
  { signIn = () => null, ...options }: Partial<HttpOptions> & { readonly signIn?: () => SignIn | null } = {},
  { feedPollMs = 20, service = SERVICE, edge = null, zones = () => ({}), ...api }: ApiOptions = {},
  { zoneIds = service.zoneIds, retentionDays, askAdvice = null, ...more }: SearchOptions = {},
) {
  const lines: string[] = [];
  const log = createLog({ level: "debug", stream: { write: (line) => lines.push(line) } });
  const stack = createStopStack(() => undefined);
  const keys = openKeys({ databaseUrl: createSecret(url), log, accounts: service.accounts }, stack);
  const { database } = keys;
  const { queries = openQueries(url), files = (await openTestFolder()).files } = more;
  const { db } = queries;
  const eventDays = retentionDays ?? service.retention.eventDays;
  const routes = listRoutes(
    {
      database,
      db,
      clock: api.clock ?? more.clock ?? systemClock,
      cursors: createPageCursors(await readServerSecret(database.db, "page-cursors", randomBytes(32))),
      zones,
      log,
      edge,
      enqueue: async () => false,
      service: { ...service, zoneIds, retention: { ...service.retention, eventDays } },
      searching: openSearching({
        refuseCostly: createRefuseCostly(1_000),
        ocsf: { vendor: null, actions: BUILT_IN_ACTIONS },
        ...more,
        queries,
        files,
      }),
      instanceId: (await readServerSecret(database.db, "instance-id", randomBytes(8))).toString("hex"),
      auditExport: createAuditExport((entry) => writeAuditEntry(database.db, entry), systemClock),
      askAdvice,
      ...(more.checkKeyEveryMs === undefined ? {} : { checkKeyEveryMs: more.checkKeyEveryMs }),
    },
    { ...openFeed(db, log, feedPollMs), ...api },
  );
  const http = await startHttp({
    log,
    authenticate: keys.authenticate,
    sessions: openSessions(keys, log, signIn),
    people: openPeople({ settings: signIn, publicUrl: null }),
    areMetricsPublic: false,
    writeSecurityEvent: (event) => writeAuditEntry(keys.database.db, event),
    ...options,
    routes: [...(options.routes ?? []), ...routes],
  });
  atEnd(async () => {
    await http.app.close();
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
