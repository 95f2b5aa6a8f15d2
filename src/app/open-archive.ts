import type { Config } from "#config/config.ts";
import { createDatabase, type Database } from "#db/client.ts";
import type { Log } from "#lib/log.ts";
import type { Secret } from "#lib/secret.ts";
import type { StopStack } from "#lib/stop-stack.ts";

export interface ArchiveParts {
  readonly config: Pick<Config, "http">;
  readonly databaseUrl: Secret;
  readonly log: Log;
}

/** The first search of a new connection plans over every day's partition, which takes about ten milliseconds. */
const IDLE_TIMEOUT_MS = 10 * 60_000;

/**
 * Opens a few connections for HTTP requests only, with a time limit for each statement. Expensive searches share these
 * connections, so ingest never waits for a search.
 */
export function openArchive({ config, databaseUrl, log }: ArchiveParts, stack: StopStack): Database {
  const archive = createDatabase({
    url: databaseUrl.reveal(),
    max: config.http.queryConnections,
    applicationName: "longwatch archive",
    statementTimeoutMs: config.http.queryTimeoutMs,
    idleInTransactionTimeoutMs: config.http.queryTimeoutMs,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    onError: (error) => log.warn({ err: error }, "archive connection lost"),
  });
  stack.defer("archive", () => archive.close());
  return archive;
}
