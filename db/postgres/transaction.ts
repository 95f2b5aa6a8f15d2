import { setTimeout as delay } from "node:timers/promises";
import { drizzle } from "drizzle-orm/node-postgres";
import type pg from "pg";
import { readSqlState } from "../../src/lib/sql-state.ts";
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
      return await runOnce(database, fn);
    } catch (thrown) {
      if (attempt === ATTEMPTS || !RETRIED.has(readSqlState(thrown) ?? "")) throw thrown;
      await delay(BACK_OFF_MS * 2 ** attempt * Math.random());
    }
  }
}

async function runOnce<T>(database: Database, fn: (transaction: Transaction) => Promise<T>): Promise<T> {
  const client = await database.pool.connect();
  let failure: { readonly thrown: unknown } | undefined;
  let result: T;
  try {
    result = await drizzle(client, { casing: "snake_case" }).transaction(async (tx) => {
      try {
        return await fn({ tx, client });
      } catch (thrown) {
        failure = { thrown };
        throw thrown;
      }
    });
  } catch (thrown) {
    // An error other than fn's means that begin, commit or rollback failed, so the connection is unusable.
    const unusable = failure === undefined || failure.thrown !== thrown;
    client.release(unusable);
    throw failure === undefined ? thrown : failure.thrown;
  }
  client.release();
  return result;
}
