import { drizzle, type NodePgDatabase, type NodePgQueryResultHKT } from "drizzle-orm/node-postgres";
import type { PgDatabase } from "drizzle-orm/pg-core";
import pg from "pg";

export interface DatabaseOptions {
  readonly url: string;
  /** Connections at most. */
  readonly max: number;
  readonly applicationName: string;
  /** Told of every connection that died before `close`, idle or in use; the query in flight rejects as well. */
  readonly onError: (error: Error) => void;
  readonly statementTimeoutMs?: number;
  readonly lockTimeoutMs?: number;
  readonly idleInTransactionTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
  /** Of one statement as this side sees it, which also ends a wait for a server that went silent. Default: none. */
  readonly queryTimeoutMs?: number;
}

/** What queries are written against: the database itself or a transaction in it. */
export type Queryable = PgDatabase<NodePgQueryResultHKT>;

export interface Database {
  readonly pool: pg.Pool;
  readonly db: NodePgDatabase;
  /** The connection that `db` is bound to, where it is bound to one. */
  readonly client?: pg.PoolClient;
  /** Waits for connections in use to be given back. */
  close(): Promise<void>;
}

/** Runs on the connection that the database is bound to, else on one of the pool. */
export async function onConnection<T>(
  { client, pool }: Pick<Database, "client" | "pool">,
  run: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  if (client !== undefined) return run(client);
  const own = await pool.connect();
  try {
    return await run(own);
  } finally {
    own.release();
  }
}

/** Connects on first use. Every session is UTC and bounded in statement, lock and idle-in-transaction time. */
export function createDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.max,
    application_name: options.applicationName,
    options: "-c timezone=UTC",
    statement_timeout: options.statementTimeoutMs ?? 60_000,
    lock_timeout: options.lockTimeoutMs ?? 10_000,
    idle_in_transaction_session_timeout: options.idleInTransactionTimeoutMs ?? 60_000,
    ...(options.queryTimeoutMs === undefined ? {} : { query_timeout: options.queryTimeoutMs }),
    connectionTimeoutMillis: options.connectTimeoutMs ?? 10_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  // Without a listener a dying connection ends the process. The pool reports idle ones only, and those a second
  // time: the client's own listener hears every one, so it is the one that tells.
  pool.on("error", () => undefined);
  // While it closes a server that stops beside it is no news.
  let isClosing = false;
  const report = (error: Error) => (isClosing ? undefined : options.onError(error));
  pool.on("connect", (client) => client.on("error", report));
  const close = () => {
    isClosing = true;
    return pool.end();
  };
  return { pool, db: drizzle(pool, { casing: "snake_case" }), close };
}
