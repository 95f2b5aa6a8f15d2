import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import type { Database } from "./client.ts";

/**
 * Runs statements on one connection and has Postgres stop the one under way when the signal aborts: a question that
 * nobody waits for any more must not keep a connection. Rejects with the signal's reason then.
 */
export async function runCancellable<T>(
  database: Database,
  signal: AbortSignal,
  run: (database: Database, client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const client = await database.pool.connect();
  let cancelling: Promise<unknown> | undefined;
  const cancel = () => {
    cancelling = cancelStatement(database, client).catch(() => undefined);
  };
  signal.addEventListener("abort", cancel, { once: true });
  try {
    signal.throwIfAborted();
    const db = drizzle(client, { casing: "snake_case" }) as Database["db"];
    return await run({ ...database, db, client }, client);
  } catch (thrown) {
    signal.throwIfAborted();
    throw thrown;
  } finally {
    signal.removeEventListener("abort", cancel);
    // Before the connection is anybody else's: a late cancellation would stop their statement.
    await cancelling;
    client.release();
  }
}

/** Over a connection of its own: those of the pool may all be busy with what is to be cancelled. */
async function cancelStatement({ pool }: Database, client: pg.PoolClient): Promise<void> {
  const { processID } = client as pg.PoolClient & { processID: number };
  const canceller = new pg.Client(pool.options);
  canceller.on("error", () => undefined);
  await canceller.connect();
  try {
    await canceller.query("select pg_cancel_backend($1)", [processID]);
  } finally {
    await canceller.end();
  }
}
