import { fileURLToPath } from "node:url";
import { readMigrationFiles } from "drizzle-orm/migrator";
import pg from "pg";
import { ADVISORY_LOCKS } from "./postgres/advisory-locks.ts";

const MIGRATIONS_FOLDER = fileURLToPath(new URL("../migrations", import.meta.url));

export interface MigrateOptions {
  /** A direct connection: a session lock does not survive a proxy that pools transactions. */
  readonly url: string;
  /** Longest wait for another replica's migration. */
  readonly waitTimeoutMs?: number;
  /** Longest wait of one statement for a lock on a table. */
  readonly lockTimeoutMs?: number;
  /** Called when the connection dies. The migration rejects as well. */
  readonly onError?: (error: Error) => void;
}

const TOO_NEW =
  "the database was migrated by a newer version of Longwatch: start that version, or restore a backup made before";

/** Thrown when a later version of this service migrated the database. Running this version on it could lose data. */
class SchemaTooNewError extends Error {
  override readonly name = "SchemaTooNewError";
  readonly code = "SCHEMA_TOO_NEW";
  readonly disposition = "give-up";
}

/**
 * Migrates the database to this version's schema. Does nothing if it is current. Any number of replicas may call it
 * at once.
 * @throws {SchemaTooNewError} and changes nothing when the database is ahead.
 */
export async function migrate(options: MigrateOptions): Promise<void> {
  const client = new pg.Client({
    connectionString: options.url,
    application_name: "longwatch migrate",
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    options: "-c timezone=UTC",
  });
  client.on("error", options.onError ?? (() => undefined));
  await client.connect();
  try {
    // A role that may only read the schema can start on a migrated database, and no process waits for a lock.
    if (await isCurrent(client)) return;
    await setLockTimeout(client, options.waitTimeoutMs ?? 120_000);
    await client.query("select pg_advisory_lock($1)", [ADVISORY_LOCKS.migrate]);
    await setLockTimeout(client, options.lockTimeoutMs ?? 10_000);
    if (await isCurrent(client)) return;
    await client.query("begin");
    await applyMigrations(client, { after: await readLatest(client) });
    await client.query("commit");
  } finally {
    // Ends the session, and with it the lock.
    await client.end();
  }
}

/**
 * Applies the migrations of this version that were made after `after` and up to `to`, both epoch ms. Keeps drizzle's
 * ledger. The connection must be in a transaction: a failure must undo all of them.
 */
export async function applyMigrations(
  client: Pick<pg.ClientBase, "query">,
  { after, to = Number.POSITIVE_INFINITY }: { after: number; to?: number },
): Promise<void> {
  await client.query("create schema if not exists drizzle");
  await client.query(
    "create table if not exists drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)",
  );
  for (const { sql, hash, folderMillis } of readMigrationFiles({ migrationsFolder: MIGRATIONS_FOLDER })) {
    if (folderMillis <= after || folderMillis > to) continue;
    for (const statement of sql) await client.query(statement);
    await client.query("insert into drizzle.__drizzle_migrations (hash, created_at) values ($1, $2)", [
      hash,
      folderMillis,
    ]);
  }
}

async function setLockTimeout(client: pg.Client, timeoutMs: number): Promise<void> {
  await client.query("select set_config('lock_timeout', $1, false)", [`${timeoutMs}ms`]);
}

/** Returns whether the last applied migration is the last one of this version. */
async function isCurrent(client: pg.Client): Promise<boolean> {
  const latest = await readLatest(client);
  if (latest > latestKnown()) throw new SchemaTooNewError(TOO_NEW);
  return latest === latestKnown();
}

/** Returns the creation time of the last applied migration, epoch ms; 0 in a database without any. */
async function readLatest(client: pg.Client): Promise<number> {
  const ledger = await client.query<{ exists: boolean }>(
    "select to_regclass('drizzle.__drizzle_migrations') is not null as exists",
  );
  if (ledger.rows[0]?.exists !== true) return 0;
  const applied = await client.query<{ latest: string | null }>(
    "select max(created_at)::text as latest from drizzle.__drizzle_migrations",
  );
  return Number(applied.rows[0]?.latest ?? 0);
}

function latestKnown(): number {
  return Math.max(...listMigrations());
}

/** Returns the creation time of each migration of this version, epoch ms. */
export function listMigrations(): number[] {
  return readMigrationFiles({ migrationsFolder: MIGRATIONS_FOLDER }).map(({ folderMillis }) => folderMillis);
}
