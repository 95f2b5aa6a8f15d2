import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { migrateCommand } from "#faces/cli/migrate.ts";
import { createTestDatabase } from "../support/database.ts";
import { runStoreCommand } from "./run-store-command.ts";

test("migrate brings an empty database to this version, and a second run changes nothing", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { url } = database;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  const countMigrations = async () =>
    (await client.query("select count(*)::int as n from drizzle.__drizzle_migrations")).rows[0].n;

  const done = { code: 0, err: "", out: "The tables are of this version.\n" };
  expect(await runStoreCommand(migrateCommand, { DATABASE_URL: url }, [], { now: Date.now() })).toEqual(done);
  const applied = await countMigrations();
  expect(applied).toBeGreaterThan(10);
  expect(await runStoreCommand(migrateCommand, { DATABASE_URL: url }, [], { now: Date.now() })).toEqual(done);
  expect(await countMigrations()).toBe(applied);
});

test("migrate without DATABASE_URL names the setting and creates nothing", async () => {
  const { code, err } = await runStoreCommand(migrateCommand, {}, [], { now: Date.now() });
  expect([code, err]).toEqual([2, expect.stringContaining("DATABASE_URL: not set")]);
});
