import { setTimeout as delay } from "node:timers/promises";
import { drizzle } from "drizzle-orm/node-postgres";
import type { PgTransactionConfig } from "drizzle-orm/pg-core";
import type pg from "pg";
import { readSqlState } from "#lib/sql-state.ts";
import type { Database, Queryable } from "../client.ts";

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
    return await drizzle(client, { casing: "snake_case" }).transaction(async (tx) => {
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
