import { cpSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import pg from "pg";
import { onTestFinished } from "vitest";
import { createDatabase } from "#db/client.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

/** The migrations of version 0.2 as they were, and what that version stored. The baseline took their place. */
const VERSION_02 = path.join(import.meta.dirname, "fixtures/version-0.2");
/** Number of the last migration of version 0.2. */
const LAST = 28;

interface Journal {
  readonly entries: readonly { readonly idx: number; readonly when: number }[];
}

const JOURNAL_02 = JSON.parse(readFileSync(path.join(VERSION_02, "meta/_journal.json"), "utf8")) as Journal;

/** Returns an empty database that version 0.2 has migrated up to the migration of this number, for the running test. */
export async function createDatabase02(last = LAST): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  await migrateTo02(database.url, last);
  return database;
}

/** Migrates a database as version 0.2 did, up to the migration of this number. */
export async function migrateTo02(url: string, last = LAST): Promise<void> {
  const folder = makeTemporaryFolder("version-02");
  cpSync(VERSION_02, folder, { recursive: true });
  const entries = JOURNAL_02.entries.filter(({ idx }) => idx <= last);
  writeFileSync(path.join(folder, "meta/_journal.json"), JSON.stringify({ ...JOURNAL_02, entries }));
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await migrate(drizzle(client), { migrationsFolder: folder });
  await client.end();
}

/** The time of the alerts that version 0.2 stored. The newest events are an hour younger. */
export const NOW_02 = Date.UTC(2026, 10, 20, 15, 30);

/**
 * Fills a database with what version 0.2 stored of its emulator and its jobs, at least one row in each table: sealed hours,
 * an archived day, an alert whose message one of two channels has refused, a silenced alert. Its archive is copied into
 * `folder`. Undelivered messages are of this moment, because old ones are given up.
 */
export async function fillAs02(url: string, folder: string): Promise<void> {
  cpSync(path.join(VERSION_02, "archive"), folder, { recursive: true });
  const rows = gunzipSync(readFileSync(path.join(VERSION_02, "rows.json.gz"))).toString();
  const database = createDatabase({ url, max: 1, applicationName: "version 0.2", onError: () => undefined });
  const { pool } = database;
  await ensurePartitions(database, ["2026-11-19", "2026-11-20"]);
  // Rows come in the order of their tables' names, and triggers have done their work.
  await pool.query("set session_replication_role = replica");
  for (const name of Object.keys(JSON.parse(rows) as object)) {
    const { rows: columns } = await pool.query<{ attname: string; is_identity: boolean }>(
      `select attname, attidentity <> '' as is_identity from pg_attribute
       where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
      [name],
    );
    const names = columns.map(({ attname }) => attname).join(", ");
    await pool.query(
      `insert into ${name} (${names}) overriding system value
       select ${names} from jsonb_populate_recordset(null::${name}, $1::jsonb -> $2)`,
      [rows, name],
    );
    if (columns.some(({ is_identity }) => is_identity))
      await pool.query(`select setval(pg_get_serial_sequence('${name}', 'id'), max(id)) from ${name}`);
  }
  await pool.query(
    "update notifications set created_at = now(), next_attempt_at = now() where state = 'pending'",
  );
  await database.close();
}
