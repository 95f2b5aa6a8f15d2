import { setTimeout as delay } from "node:timers/promises";
import { describePostgresFailure } from "#adapters/embedded/describe-postgres-failure.ts";
import type { Config } from "#config/config.ts";
import { createDatabase, type Database } from "#db/client.ts";
import { COMMAND_SESSIONS } from "#db/postgres/session-names.ts";
import { toError, UsageError } from "#lib/errors.ts";
import { escapeText } from "#lib/escape-text.ts";
import { messageOf } from "#lib/message-of.ts";
import { startHint } from "#lib/own-command.ts";
import { OutputClosedError } from "../edge/edge-io.ts";
import { findStoreUrl } from "./open-store.ts";
import type { StoreIo } from "./store-command.ts";

const RETRY_MS = 1_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** Ends the wait for a server that stopped answering. */
const QUERY_TIMEOUT_MS = 30_000;

export interface Followed {
  readonly database: Database;
  readonly signal: AbortSignal;
  /** Called after each answer of the database, so that later failures are retried and not reported as the end. */
  readonly onAnswer: () => void;
}

/**
 * Runs `work` on the database of the service until Ctrl-C, and again after each failure that follows an answer. Never
 * starts the embedded database, because the service could not start beside it. Calls `onLost` once per outage, `onBack`
 * after it.
 * @throws whatever ends `work` before the first answer of the database.
 */
export async function followStore(
  io: Pick<StoreIo, "interrupted">,
  readConfig: () => Config,
  {
    onLost,
    onBack,
  }: { readonly onLost: (reason: string) => void | Promise<void>; readonly onBack: () => void },
  work: (followed: Followed) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const signal = io.interrupted === undefined ? stop.signal : AbortSignal.any([stop.signal, io.interrupted]);
  const onSignal = () => stop.abort();
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  let hasAnswered = false;
  let isLost = false;
  const onAnswer = () => {
    if (isLost) onBack();
    isLost = false;
    hasAnswered = true;
  };
  try {
    while (!signal.aborted) {
      try {
        await onStore(readConfig(), (database) => work({ database, signal, onAnswer }));
      } catch (thrown) {
        if (signal.aborted) return;
        if (!hasAnswered || thrown instanceof OutputClosedError || thrown instanceof UsageError) throw thrown;
        if (!isLost) await onLost(describe(thrown));
        isLost = true;
        await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

async function onStore(config: Config, work: (database: Database) => Promise<void>): Promise<void> {
  // Looked up again each time, because the embedded database of a restarted service may have another port.
  const url = findStoreUrl(config);
  if (url === undefined)
    throw new Error(
      `no service runs on ${config.dataDir}: ${startHint()} first, or set DATABASE_URL or LONGWATCH_DATA_DIR to the values of the service`,
    );
  const database = createDatabase({
    url,
    max: 1,
    applicationName: COMMAND_SESSIONS,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    queryTimeoutMs: QUERY_TIMEOUT_MS,
    onError: () => undefined,
  });
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
