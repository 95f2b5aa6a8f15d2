import { randomUUID } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";

/** An empty database of the run's Postgres, by a random name. */
export async function createTestDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  await asSuperuser(`CREATE DATABASE ${name}`);
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
