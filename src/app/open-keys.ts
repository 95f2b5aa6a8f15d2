import { createDatabase, type Database } from "#db/client.ts";
import { findApiKey, touchApiKey } from "#db/keys/api-keys.ts";
import { createAuthenticate } from "#faces/http/keys/authenticate.ts";
import { createLastUsed } from "#faces/http/keys/last-used.ts";
import { systemClock } from "#lib/clock.ts";
import { toError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import type { Secret } from "#lib/secret.ts";
import type { StopStack } from "#lib/stop-stack.ts";
import type { Authenticate } from "#operations/caller.ts";

const CONNECTIONS = 3;
const TIMEOUT_MS = 5_000;

export interface KeysParts {
  readonly databaseUrl: Secret;
  readonly log: Log;
}

export interface OpenKeys {
  readonly database: Database;
  readonly authenticate: Authenticate;
}

/**
 * Opens connections for keys and for security events only, so that neither many wrong keys nor a slow search delays
 * other requests.
 */
export function openKeys({ databaseUrl, log }: KeysParts, stack: StopStack): OpenKeys {
  const database = createDatabase({
    url: databaseUrl.reveal(),
    max: CONNECTIONS,
    applicationName: "longwatch keys",
    statementTimeoutMs: TIMEOUT_MS,
    lockTimeoutMs: TIMEOUT_MS,
    connectTimeoutMs: TIMEOUT_MS,
    onError: (error) => log.warn({ err: error }, "key database connection lost"),
  });
  stack.defer("keys", () => database.close());
  const onUsed = createLastUsed({
    clock: systemClock,
    touch: (keyId) => touchApiKey(database.db, keyId),
    onError: (thrown) => log.warn({ err: toError(thrown) }, "last key use not recorded"),
  });
  const authenticate = createAuthenticate({ find: (keyId) => findApiKey(database.db, keyId), onUsed });
  return { database, authenticate };
}
