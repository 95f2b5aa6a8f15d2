import { fileURLToPath } from "node:url";
import { readMigrationFiles } from "drizzle-orm/migrator";
import type pg from "pg";
import { SessionClient } from "./client.ts";
import { ADVISORY_LOCKS } from "./postgres/transaction.ts";

const MIGRATIONS_FOLDER = fileURLToPath(new URL("../migrations", import.meta.url));

export interface MigrateOptions {
  /** The sessions must be its own (`refuseServer`), because the lock is one of a session. */
  readonly url: string;
  /** Longest wait for another replica's migration. */
  readonly waitTimeoutMs?: number;
  /** Longest wait of one statement for a lock on a table. */
  readonly lockTimeoutMs?: number;
  /** Called when the connection dies. The migration rejects as well. */
  readonly onError?: (error: Error) => void;
}

/** The last commit that made the schema of the baseline in steps. It migrates databases that are older. */
export const BEFORE_BASELINE = "Longwatch 0.3.0 of the commit ba571f6e";

const REASONS = {
  SCHEMA_TOO_NEW:
    "the database was migrated by a newer version of Longwatch: start that version, or restore a backup made before",
  SCHEMA_TOO_OLD: `the tables of the database are older than this version can migrate, and nothing was changed: start ${BEFORE_BASELINE} once, and then start this version`,
};

/** Thrown for a database that this version can neither use nor migrate. Nothing was changed. */
class SchemaError extends Error {
  override readonly name = "SchemaError";
  readonly disposition = "give-up";
  readonly code: keyof typeof REASONS;

  constructor(code: keyof typeof REASONS) {
    super(REASONS[code]);
    this.code = code;
  }
}

/**
 * Migrates the database to this version's schema. Does nothing if it is current. Any number of replicas may call it
 * at once.
 * @throws {SchemaError} and changes nothing when the database is ahead, or older than the baseline.
 */
export async function migrate(options: MigrateOptions): Promise<void> {
  const client = new SessionClient({
    connectionString: options.url,
    application_name: "longwatch migrate",
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
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
  const known = listMigrations();
  if (latest > Math.max(...known)) throw new SchemaError("SCHEMA_TOO_NEW");
  // The baseline has the time of the last migration that it replaced. This version no longer has the steps before it.
  if (latest > 0 && latest < Math.min(...known)) throw new SchemaError("SCHEMA_TOO_OLD");
  return latest === Math.max(...known);
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

/** Returns the creation time of each migration of this version, epoch ms. The first one is the baseline. */
export function listMigrations(): number[] {
  return readMigrationFiles({ migrationsFolder: MIGRATIONS_FOLDER }).map(({ folderMillis }) => folderMillis);
}
