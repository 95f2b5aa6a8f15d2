import { setTimeout as setTimer } from "node:timers";
import { setTimeout } from "node:timers/promises";
import { drizzle } from "drizzle-orm/node-postgres";
import type pg from "pg";
import { type Database, SessionClient } from "../client.ts";

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
    const db = drizzle(client, { casing: "snake_case" }) as Database["db"];
    return await run({ ...database, db, client }, client);
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
