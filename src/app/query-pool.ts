import type { Config } from "#config/config.ts";
import { createDatabase, type Database } from "#db/client.ts";
import { type AdmissionQueue, createAdmissionQueue } from "#faces/http/limits/admission-queue.ts";
import type { Log } from "#lib/log.ts";
import type { Secret } from "#lib/secret.ts";
import type { StopStack } from "#lib/stop-stack.ts";

export interface QueryPoolParts {
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
export function openQueryPool({ config, databaseUrl, log }: QueryPoolParts, stack: StopStack): Database {
  const queries = createDatabase({
    url: databaseUrl.reveal(),
    max: config.http.queryConnections,
    applicationName: "longwatch queries",
    statementTimeoutMs: config.http.queryTimeoutMs,
    idleInTransactionTimeoutMs: config.http.queryTimeoutMs,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    onError: (error) => log.warn({ err: error }, "query connection lost"),
  });
  stack.defer("queries", () => queries.close());
  return queries;
}

/** Time limit of the wait. Together with the search's own time limit it is about as long as clients wait. */
const MAX_WAIT_MS = 15_000;
/** A quarter of a machine with two cores. */
const CPU_MS_PER_MINUTE = 30_000;

/**
 * Opens the queue. Quick work gets half of the connections, so that one key can run two requests at a time. Long work
 * gets a third.
 */
export function openAdmissionQueue(
  { pool: { options } }: Pick<Database, "pool">,
  { maxWaitMs = MAX_WAIT_MS, cpuMsPerMinute = CPU_MS_PER_MINUTE } = {},
): AdmissionQueue {
  const { max } = options;
  return createAdmissionQueue({
    places: { quick: Math.max(3, Math.floor(max / 2)), long: Math.max(2, Math.floor(max / 3)) },
    perKey: { quick: max * 2, long: max * 2 },
    maxWaitMs,
    cpuMsPerMinute,
  });
}
