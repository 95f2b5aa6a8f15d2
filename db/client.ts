import { NodePgDatabase, type NodePgQueryResultHKT, NodePgSession } from "drizzle-orm/node-postgres";
import { type PgDatabase, PgDialect } from "drizzle-orm/pg-core";
import pg from "pg";
import { toError } from "#lib/errors.ts";
import { withSession } from "#lib/sql-session.ts";
import { skipLostNumbers } from "./postgres/leases.ts";

/** A connection with the settings that the code relies on. */
export const SessionClient = withSession(pg.Client);
export type SessionClient = InstanceType<typeof SessionClient>;

export interface DatabaseOptions {
  readonly url: string;
  /** Maximum number of connections. */
  readonly max: number;
  readonly applicationName: string;
  /** Called for every connection that died before `close`, idle or in use. The running query rejects as well. */
  readonly onError: (error: Error) => void;
  readonly statementTimeoutMs?: number;
  readonly lockTimeoutMs?: number;
  readonly idleInTransactionTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
  /** A connection that was idle for this long is closed. Default 5 min. */
  readonly idleTimeoutMs?: number;
  /**
   * Time limit of one statement, measured here, which also ends the wait for a server that stopped answering.
   * Default: none.
   */
  readonly queryTimeoutMs?: number;
  /** A statement without an answer for this long makes the client ask the server on a new connection. Default 15 s. */
  readonly silentAfterMs?: number;
}

/** The type that queries are written against: the database or a transaction in it. */
export type Queryable = PgDatabase<NodePgQueryResultHKT>;

export interface Database {
  readonly pool: pg.Pool;
  readonly db: NodePgDatabase;
  /** The connection that `db` is bound to, if it is bound to one. */
  readonly client?: pg.PoolClient;
  /** Number of parallel workers that the server may use for one search. Default: as many as are useful. */
  readonly parallelWorkers?: number;
  /** Waits until all connections in use are returned and the server has ended all sessions. */
  close(): Promise<void>;
}

/** One for all connections, because each dialect derives the names of a table's columns anew when it first meets the table. */
const DIALECT = new PgDialect({ casing: "snake_case" });

/** Returns the query builder on a pool or on one of its connections. */
export function bindTo(client: pg.Pool | pg.PoolClient): NodePgDatabase {
  return new NodePgDatabase(DIALECT, new NodePgSession(client, DIALECT, undefined), undefined);
}

/** Runs `fn` on the connection that the database is bound to, else on one of the pool. */
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
 * Longer than the longest pause between two ticks that use a connection. A new session costs the server some 20 ms:
 * it starts a process and looks up the tables and functions again.
 */
const IDLE_TIMEOUT_MS = 5 * 60_000;
/** Longest wait for a server that does not confirm the end of a session. */
const GOODBYE_MS = 2_000;

/**
 * Returns a database that connects on first use. Every session has `SESSION_SETTINGS` and limits the time of a
 * statement, of a lock and of an idle transaction.
 */
export function createDatabase(options: DatabaseOptions): Database {
  let timeline: string | null = null;
  const verify = async (client: pg.PoolClient, done: (error?: Error) => void) => {
    let failure: Error | undefined;
    try {
      timeline = await skipLostNumbers(bindTo(client), timeline);
    } catch (thrown) {
      failure = toError(thrown);
    }
    done(failure);
  };
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.max,
    application_name: options.applicationName,
    Client: SessionClient,
    statement_timeout: options.statementTimeoutMs ?? 60_000,
    lock_timeout: options.lockTimeoutMs ?? 10_000,
    idle_in_transaction_session_timeout: options.idleInTransactionTimeoutMs ?? 60_000,
    ...(options.queryTimeoutMs === undefined ? {} : { query_timeout: options.queryTimeoutMs }),
    connectionTimeoutMillis: options.connectTimeoutMs ?? 10_000,
    idleTimeoutMillis: options.idleTimeoutMs ?? IDLE_TIMEOUT_MS,
    ...(options.silentAfterMs === undefined ? {} : { silentAfterMs: options.silentAfterMs }),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    verify: (client, done) => void verify(client, done),
  });
  // Without a listener a dying connection ends the process. The pool reports only idle connections, and the client
  // reports those as well. So only the client's listener reports errors.
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
  return { pool, db: bindTo(pool), close };
}

/**
 * Waits until the server has ended the sessions. The pool counts a connection as closed once it has sent the goodbye.
 * A server that is stopped right after that would still find the session, end it by force and report a lost
 * connection.
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
