import { afterAll, beforeEach, inject } from "vitest";
import { createDatabase, type Database } from "#db/client.ts";
import { createTestDatabase } from "../support/database.ts";

export interface MigratedDatabase extends Database {
  readonly url: string;
  /** The errors that the pool reported for dying connections. */
  readonly errors: Error[];
  drop(): Promise<void>;
}

/**
 * The locks that a session of this database waits for. Every test database is on one server and copied from one
 * template, so `pg_locks` also lists the waits of other tests, at tables of the same oid.
 */
export const WAITS_HERE =
  "pg_locks where not granted and database = (select oid from pg_database where datname = current_database())";

/** A database with this version's schema, and a pool on it. With `template`, a copy of that database, which has no connection. */
export async function createMigratedDatabase(
  template = inject("migratedTemplate"),
): Promise<MigratedDatabase> {
  const copy = await createTestDatabase(template);
  const { url } = copy;
  const errors: Error[] = [];
  const onError = (error: Error) => void errors.push(error);
  const database = createDatabase({ url, max: 12, applicationName: "longwatch test", onError });
  return {
    ...database,
    url,
    errors,
    drop: async () => {
      await database.close();
      await copy.drop();
    },
  };
}

/** The tables of this schema that have rows. An emptied table has no page. */
const FILLED = `select coalesce(string_agg(format('%I', relname), ', '), '') as tables from pg_class
  where relkind = 'r' and relnamespace = 'public'::regnamespace and pg_relation_size(oid) > 0`;

/**
 * Opens the database of a test file at its top level. Empties its tables before each test, because a copy for each test would cost
 * six times as much.
 */
export async function shareDatabase(): Promise<MigratedDatabase> {
  const database = await createMigratedDatabase();
  afterAll(() => database.drop());
  beforeEach(async () => {
    const { rows } = await database.pool.query<{ tables: string }>(FILLED);
    const tables = rows[0]?.tables ?? "";
    if (tables === "") return;
    // As the table's owner: no statement of the service can delete audit entries.
    await database.pool.query(
      `alter table audit_entries disable trigger user; truncate ${tables} restart identity cascade;
       alter table audit_entries enable trigger user`,
    );
  });
  return database;
}
