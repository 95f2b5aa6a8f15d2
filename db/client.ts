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
  /** After so long without work a connection is closed. Default 5 min. */
  readonly idleTimeoutMs?: number;
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
  /** Processes that may help the server with one search; left out, as many as are of use. */
  readonly parallelWorkers?: number;
  /** Waits for connections in use to be given back, and for the server to have let go of all of them. */
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

/**
 * Longer than the longest pause between two ticks that use a connection. A new session costs the server some 20 ms: a
 * process, and the tables and functions that it has to look up again.
 */
const IDLE_TIMEOUT_MS = 5 * 60_000;
/** A server that does not say goodbye is not waited for. */
const GOODBYE_MS = 2_000;

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
    idleTimeoutMillis: options.idleTimeoutMs ?? IDLE_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  // Without a listener a dying connection ends the process. The pool reports idle ones only, and those a second
  // time: the client's own listener hears every one, so it is the one that tells.
  pool.on("error", () => undefined);
  const open = new Set<pg.PoolClient>();
  pool.on("connect", (client) => {
    open.add(client);
    client.on("error", options.onError).once("end", () => open.delete(client));
  });
  const close = async () => {
    await pool.end();
    await allEnded(open);
  };
  return { pool, db: drizzle(pool, { casing: "snake_case" }), close };
}

/**
 * The pool is done with a connection once it has taken leave. A server that is stopped the moment after would still find
 * the session there, end it by force and so have a connection die that nobody has lost.
 */
async function allEnded(open: ReadonlySet<pg.PoolClient>): Promise<void> {
  if (open.size === 0) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, GOODBYE_MS);
  });
  const ended = [...open].map((client) => new Promise<void>((resolve) => client.once("end", resolve)));
  await Promise.race([Promise.all(ended), late]);
  clearTimeout(timer);
}
