/** Checks a Postgres server before the first use, and names the sessions on it. */

import { sql } from "drizzle-orm";
import { readSqlState, UsageError } from "#lib/errors.ts";
import { type Queryable, SessionClient } from "../client.ts";

/** With this, PgBouncer refuses a transaction in statement mode. */
const PROTOCOL_VIOLATION = "08P01";
/** Sessions that are occupied, because other clients of a pooler move them about as well. */
const MOST_OCCUPIED = 8;
const QUERY_TIMEOUT_MS = 10_000;

export const UTF8_RULE = "create the database with encoding UTF8";
export const POOLER_RULE =
  "connect to Postgres directly, or through a pooler in session mode (docs/deploy.md#poolers)";

/**
 * Refuses a server on which the service would run without storing events.
 * @throws {UsageError}
 */
export async function refuseServer(url: string): Promise<void> {
  if (await sharesSessions(url))
    throw new UsageError([
      `DATABASE_URL: the pooler gives each transaction another session, and Longwatch needs sessions of its own: ${POOLER_RULE}`,
    ]);
  const encoding = await withClient(url, (client) =>
    readOne(
      client,
      "select pg_encoding_to_char(encoding) from pg_database where datname = current_database()",
    ),
  );
  if (encoding !== "UTF8")
    throw new UsageError([
      `DATABASE_URL: the database's encoding is ${String(encoding)}, which cannot hold every request: ${UTF8_RULE}`,
    ]);
}

/**
 * Returns whether two connections get the same session of the server, one after the other, or one connection several. A
 * pooler in transaction or statement mode does that. Session locks, settings and notifications are lost then.
 */
export async function sharesSessions(url: string): Promise<boolean> {
  const ask = "select pg_backend_pid()";
  return withClient(url, async (one) => {
    const first = await readOne(one, ask);
    /** Each further connection keeps its session until the end, so that the first one gets another one if it can. */
    const occupy = (left: number): Promise<boolean> =>
      withClient(url, async (other) => {
        try {
          await other.query("begin");
        } catch (thrown) {
          if (readSqlState(thrown) === PROTOCOL_VIOLATION) return true;
          throw thrown;
        }
        if ((await readOne(other, ask)) === first || (await readOne(one, ask)) !== first) return true;
        return left > 1 && occupy(left - 1);
      });
    return occupy(MOST_OCCUPIED);
  });
}

async function withClient<T>(url: string, run: (client: SessionClient) => Promise<T>): Promise<T> {
  const client = new SessionClient({
    connectionString: url,
    application_name: "longwatch check",
    connectionTimeoutMillis: QUERY_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
  });
  await client.connect();
  try {
    return await run(client);
  } finally {
    await client.end();
  }
}

async function readOne(client: SessionClient, text: string): Promise<unknown> {
  const { rows } = await client.query<[unknown]>({ text, rowMode: "array" });
  return rows[0]?.[0];
}

/**
 * Returns how far Postgres's clock is ahead of this machine's, in ms. The error is at most half the query's duration.
 */
export async function readClockOffset(db: Queryable): Promise<number> {
  const before = Date.now();
  const { rows } = await db.execute<{ at: number }>(
    sql`select extract(epoch from clock_timestamp())::float8 * 1000 as at`,
  );
  const middle = (before + Date.now()) / 2;
  return (rows[0]?.at ?? middle) - middle;
}

/**
 * Application name of the sessions that copy events, which are those of jobs and of commands. Requests of clients
 * have a pool and a name of their own.
 */
export const WORK_SESSIONS = "longwatch";
export const COMMAND_SESSIONS = "longwatch command";
