import { randomUUID } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** Creates an empty database of the run's Postgres with a random name; with `template`, a copy of that one. */
export async function createTestDatabase(template = "template1", more = ""): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  // Files are copied. The run's Postgres does not sync, so the checkpoints that a copy needs cost little.
  await asSuperuser(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy ${more}`);
  const url = new URL(inject("postgresUrl"));
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => asSuperuser(`DROP DATABASE ${name} WITH (FORCE)`) };
}

async function asSuperuser(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject("postgresUrl") });
  client.on("error", () => undefined);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
