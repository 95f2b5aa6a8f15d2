import { readFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import pg from "pg";
import { onTestFinished } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

/** Times of migrations in drizzle's ledger, epoch ms. */
export const MIGRATED = {
  /** The last one of version 0.2. */
  by02: 1_795_562_716_271,
  /** The last but one of the migrations that the baseline replaced. */
  allButOne: 1_795_841_303_427,
};

/** `pg_dump` of an empty database of the commit before the baseline: its schema, made by ten migrations, and its ledger. */
const DUMP = path.join(import.meta.dirname, "fixtures/before-baseline.sql.gz");

/**
 * Returns a database of the commit before the baseline, for the running test. With `through`, the ledger ends with the
 * migration of that time, as the ledger of an older version does.
 */
export async function createDatabaseBefore(through = Number.MAX_SAFE_INTEGER): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(gunzipSync(readFileSync(DUMP)).toString());
  await client.query("delete from drizzle.__drizzle_migrations where created_at > $1", [through]);
  await client.end();
  return database;
}
