import { createDatabase, type Database } from "../../db/client.ts";
import type { Config } from "../config/config.ts";
import type { Log } from "../lib/log.ts";
import type { Secret } from "../lib/secret.ts";
import type { StopStack } from "../lib/stop-stack.ts";

export interface ArchiveParts {
  readonly config: Pick<Config, "http">;
  readonly databaseUrl: Secret;
  readonly log: Log;
}

/** A new connection plans its first search over every day's partition: some ten milliseconds. */
const IDLE_TIMEOUT_MS = 10 * 60_000;

/**
 * Connections of their own for whoever asks over HTTP, few, and each statement bounded: the heaviest questions take
 * turns here, and what copies events never waits behind one.
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
