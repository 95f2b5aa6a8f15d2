import { inject } from "vitest";
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

/** A database with this version's schema, and a pool on it. */
export async function createMigratedDatabase(): Promise<MigratedDatabase> {
  const copy = await createTestDatabase(inject("migratedTemplate"));
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
