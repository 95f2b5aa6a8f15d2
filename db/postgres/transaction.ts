/** Transactions, their locks, and how a query is cancelled. */

import { setTimeout as setTimer } from "node:timers";
import { setTimeout as delay, setTimeout } from "node:timers/promises";
import type { PgTransactionConfig } from "drizzle-orm/pg-core";
import type pg from "pg";
import { readSqlState } from "#lib/errors.ts";
import { bindTo, type Database, type Queryable, SessionClient } from "../client.ts";

/** Deadlock, serialization failure, lock timeout. Postgres has undone everything, so running again is safe. */
const RETRIED = new Set(["40P01", "40001", "55P03"]);
const ATTEMPTS = 5;
const BACK_OFF_MS = 20;

export interface Transaction {
  readonly tx: Queryable;
  /** The connection of `tx`, for COPY. */
  readonly client: pg.PoolClient;
}

/**
 * Runs `fn` in one transaction and commits. `fn` runs up to five times if Postgres asks for a retry, so it must have
 * no effect outside the transaction. A connection lost during the commit is not retried, because the outcome is
 * unknown.
 */
export async function inTransaction<T>(
  database: Database,
  fn: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await runTransaction(database, fn);
    } catch (thrown) {
      if (attempt === ATTEMPTS || !RETRIED.has(readSqlState(thrown) ?? "")) throw thrown;
      await delay(BACK_OFF_MS * 2 ** attempt * Math.random());
    }
  }
}

/** Runs `fn` in one transaction, once, and commits. */
export async function runTransaction<T>(
  database: Database,
  fn: (transaction: Transaction) => Promise<T>,
  config?: PgTransactionConfig,
): Promise<T> {
  const client = await database.pool.connect();
  let isUsable = true;
  const onUnusable = () => {
    isUsable = false;
  };
  try {
    return await transact(client, (tx) => fn({ tx, client }), { config, onUnusable });
  } finally {
    client.release(!isUsable);
  }
}

interface TransactOptions {
  readonly config?: PgTransactionConfig | undefined;
  /** Called if begin, commit or rollback failed. */
  readonly onUnusable?: () => void;
}

/** Runs `fn` in a transaction of this connection. Throws the error of `fn`, also if the rollback after it fails. */
export async function transact<T>(
  client: pg.PoolClient,
  fn: (tx: Queryable) => Promise<T>,
  { config, onUnusable }: TransactOptions = {},
): Promise<T> {
  let failure: { readonly thrown: unknown } | undefined;
  try {
    return await bindTo(client).transaction(async (tx) => {
      try {
        return await fn(tx);
      } catch (thrown) {
        failure = { thrown };
        throw thrown;
      }
    }, config);
  } catch (thrown) {
    if (failure?.thrown !== thrown) onUnusable?.();
    throw failure === undefined ? thrown : failure.thrown;
  }
}

/** The pool client with pg's switch for sending without waiting, which pg's types do not declare yet. */
type Pipelined = pg.PoolClient & { pipeline: boolean };

/**
 * Runs the statements that `send` starts, in order, in one round trip, because every wait for an answer prolongs the
 * transaction's locks. Nothing else may use the connection meanwhile, and no statement may be a COPY. After a failure
 * Postgres refuses the statements behind it. The first failure is thrown when all are answered.
 */
export async function inOneTrip<T extends readonly PromiseLike<unknown>[]>(
  client: pg.PoolClient,
  send: () => readonly [...T],
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const pipelined = client as Pipelined;
  pipelined.pipeline = true;
  try {
    const answers = await Promise.allSettled(send());
    return answers.map((answer) => {
      if (answer.status === "rejected") throw answer.reason;
      return answer.value;
    }) as { -readonly [K in keyof T]: Awaited<T[K]> };
  } finally {
    pipelined.pipeline = false;
  }
}

/** Keys of the database-wide advisory locks, in one place so that no two meanings share a number. */
export const ADVISORY_LOCKS = {
  migrate: 7_603_001,
  partitions: 7_603_002,
  erasures: 7_603_003,
  /** Taken while the alert of a weekly digest is written. */
  weeklyDigest: 7_603_004,
  /** Locked by the trigger that numbers alert transitions. */
  alertTransitions: 7_603_012,
} as const;

/**
 * Runs statements on one connection and cancels the running one when the signal aborts, so that a request without a
 * reader does not keep a connection. Rejects with the signal's reason then. All statements together may take as long
 * as the pool allows for one: the statement that exceeds the rest is cancelled (57014).
 */
export async function runCancellable<T>(
  database: Database,
  signal: AbortSignal,
  run: (database: Database, client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const client = await database.pool.connect();
  let cancelling: Promise<unknown> | undefined;
  let isOver = false;
  const cancel = () => {
    cancelling ??= cancelStatements(database, client, () => isOver).catch(() => undefined);
  };
  signal.addEventListener("abort", cancel, { once: true });
  const limitMs = database.pool.options.statement_timeout;
  const timer = typeof limitMs === "number" && limitMs > 0 ? setTimer(cancel, limitMs) : undefined;
  try {
    signal.throwIfAborted();
    return await run({ ...database, db: bindTo(client), client }, client);
  } catch (thrown) {
    signal.throwIfAborted();
    throw thrown;
  } finally {
    isOver = true;
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
    // The connection must not return to the pool before this: a late cancellation would stop another caller's
    // statement.
    await cancelling;
    // A cancellation may have hit the rollback. Such a connection is closed instead of reused.
    client.release(cancelling !== undefined);
  }
}

const AGAIN_MS = 50;

/**
 * Cancels the running statement over a connection of its own, because the pool's connections may all be busy with the
 * statements to cancel. Repeats until the work ends, because between two statements there is none to cancel.
 */
async function cancelStatements(
  { pool }: Database,
  client: pg.PoolClient,
  isOver: () => boolean,
): Promise<void> {
  const { processID } = client as pg.PoolClient & { processID: number };
  const canceller = new SessionClient(pool.options);
  canceller.on("error", () => undefined);
  await canceller.connect();
  try {
    while (!isOver()) {
      await canceller.query("select pg_cancel_backend($1)", [processID]);
      await setTimeout(AGAIN_MS);
    }
  } finally {
    await canceller.end();
  }
}
