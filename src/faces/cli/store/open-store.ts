/** Opens the store for one command, once or until it is stopped. */

import { setTimeout as delay } from "node:timers/promises";
import { readRuntimeFile } from "#app/runtime-file.ts";
import type { Config } from "#config/config.ts";
import { createDatabase, type Database } from "#db/client.ts";
import { COMMAND_SESSIONS, readClockOffset } from "#db/postgres/server.ts";
import type { Clock } from "#lib/clock.ts";
import { messageOf, ServiceError, toError } from "#lib/errors.ts";
import { explainTlsFailure } from "#lib/http.ts";
import { startHint } from "#lib/process.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { escapeText } from "#lib/text.ts";
import { Refusal } from "#operations/refusal.ts";
import { hasCluster } from "#store/embedded/place-cluster.ts";
import { startEmbeddedPostgres } from "#store/embedded/postgres.ts";
import { describePostgresFailure, EmbeddedPostgresError } from "#store/embedded/postgres-error.ts";
import { OutputClosedError } from "../edge/edge-io.ts";
import { describeOutage } from "../start/describe-failure.ts";
import type { StoreIo } from "./store-command.ts";

const SESSION = { applicationName: COMMAND_SESSIONS, onError: () => undefined };
const OR_SET = "or set DATABASE_URL or LONGWATCH_DATA_DIR to the values of the service";

/**
 * Runs `fn` on the service's database: the configured database, the database of the running service, or the embedded
 * database of a stopped service, which is started while `fn` runs. Creates an embedded database only if `mayCreate` is set.
 * @throws {Error} when there is no database.
 */
export async function withStore<T>(
  config: Config,
  fn: (database: Database, databaseUrl: Secret) => Promise<T>,
  { mayCreate = false } = {},
): Promise<T> {
  const known = findStoreUrl(config);
  if (known === undefined && !mayCreate && !hasCluster(config.dataDir))
    throw new Error(`there is no database in ${config.dataDir}: ${startHint()} first, ${OR_SET}`);
  const postgres = known === undefined ? await startEmbeddedPostgres({ dataDir: config.dataDir }) : null;
  const url = known ?? postgres?.url ?? "";
  const database = createDatabase({ ...SESSION, url, max: 2 });
  try {
    return await fn(database, createSecret(url));
  } catch (thrown) {
    const isDown = config.databaseUrl === null && describePostgresFailure(thrown) !== null;
    const outage = isDown ? describeOutage(config.dataDir) : null;
    if (outage !== null) throw new EmbeddedPostgresError(outage, [], { cause: thrown });
    throw explainTlsFailure(thrown, "Postgres");
  } finally {
    await database.close();
    await postgres?.stop();
  }
}

/** Returns the URL of the configured database or of the running service's database, else undefined. */
function findStoreUrl({ databaseUrl, dataDir }: Config): string | undefined {
  return databaseUrl?.reveal() ?? readRuntimeFile(dataDir)?.databaseUrl;
}

/** Returns a clock with the time of Postgres, because the service uses that time for everything it writes. */
export async function readServiceClock({ db }: Database, clock: Clock): Promise<Clock> {
  const offsetMs = Math.round(await readClockOffset(db));
  return () => clock() + offsetMs;
}

/** Runs `fn` with a signal that aborts on Ctrl-C, on SIGTERM, and with `interrupted`. */
export async function untilStopped<T>(
  { interrupted }: Pick<StoreIo, "interrupted">,
  fn: (signal: AbortSignal) => Promise<T>,
  reason = "stopped",
): Promise<T> {
  const stopping = new AbortController();
  const stop = () => stopping.abort(new Error(reason));
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    const signals = [stopping.signal, ...(interrupted === undefined ? [] : [interrupted])];
    return await fn(AbortSignal.any(signals));
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
  }
}

const RETRY_MS = 1_000;
/** Time limits, for a server that stopped answering. */
const TIMEOUTS = { connectTimeoutMs: 5_000, queryTimeoutMs: 30_000 };
const TOO_MANY_REQUESTS = 429;

interface Followed {
  readonly signal: AbortSignal;
  /** Called after each answer, so that later failures are retried and not reported as the end. */
  readonly onAnswer: () => void;
}

/**
 * Runs `work` until Ctrl-C, and again after each failure that follows an answer and that time may mend. Calls `onLost` once
 * per outage, `onBack` after it.
 * @throws whatever ends `work` before the first answer, and a failure that no repetition mends
 */
export async function follow(
  io: Pick<StoreIo, "interrupted">,
  {
    onLost,
    onBack,
  }: { readonly onLost: (reason: string) => void | Promise<void>; readonly onBack: () => void },
  work: (followed: Followed) => Promise<void>,
): Promise<void> {
  let hasAnswered = false;
  let isLost = false;
  const onAnswer = () => {
    if (isLost) onBack();
    isLost = false;
    hasAnswered = true;
  };
  await untilStopped(io, async (signal) => {
    while (!signal.aborted) {
      try {
        await work({ signal, onAnswer });
      } catch (thrown) {
        if (signal.aborted) return;
        if (!hasAnswered || isFinal(thrown)) throw thrown;
        if (!isLost) await onLost(describe(thrown));
        isLost = true;
        await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  });
}

function isFinal(thrown: unknown): boolean {
  if (thrown instanceof Refusal) return thrown.statusCode < 500 && thrown.statusCode !== TOO_MANY_REQUESTS;
  if (thrown instanceof ServiceError) return thrown.disposition === "give-up";
  return thrown instanceof OutputClosedError;
}

/**
 * Runs `work` on the database of the running service over one connection. Never starts the embedded database, because the
 * service could not start beside it.
 */
export async function onRunningStore(
  config: Config,
  work: (database: Database) => Promise<void>,
): Promise<void> {
  // Looked up again each time, because the embedded database of a restarted service may have another port.
  const url = findStoreUrl(config);
  if (url === undefined)
    throw new Error(`no service runs on ${config.dataDir}: ${startHint()} first, ${OR_SET}`);
  const database = createDatabase({ ...SESSION, ...TIMEOUTS, url, max: 1 });
  try {
    await work(database);
  } finally {
    await database.close();
  }
}

function describe(thrown: unknown): string {
  const error = toError(thrown);
  const cause = error.cause instanceof Error ? error.cause : error;
  return describePostgresFailure(thrown) ?? escapeText(messageOf(cause));
}
