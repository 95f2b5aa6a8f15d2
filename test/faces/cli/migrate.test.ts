import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { listMigrations } from "#db/migrate.ts";
import { migrateCommand } from "#faces/cli/backup.ts";
import { createDatabaseBefore, MIGRATED } from "../../db/before-baseline.ts";
import { createTestDatabase } from "../../support/database.ts";
import { quickEnvironment } from "../../support/quick-environment.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { runStoreCommand } from "./run-store-command.ts";

const PROGRAM = path.join(import.meta.dirname, "..", "..", "..", "src", "main.ts");

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
  expect(applied).toBe(listMigrations().length);
  expect(await runStoreCommand(migrateCommand, { DATABASE_URL: url }, [], { now: Date.now() })).toEqual(done);
  expect(await countMigrations()).toBe(applied);
});

test("migrate and start name the version that must run first for a database before the baseline", async () => {
  const { url } = await createDatabaseBefore(MIGRATED.by02);
  const { code, out, err } = await runStoreCommand(migrateCommand, { DATABASE_URL: url }, [], {
    now: Date.now(),
  });
  const named =
    "the tables of the database are older than this version can migrate, and nothing was changed: start Longwatch 0.3.0 of the commit ba571f6e once, and then start this version\n";
  expect([code, out, err]).toEqual([1, "", `longwatch migrate: ${named}`]);

  const started = await promisify(execFile)(process.execPath, [PROGRAM, "start"], {
    env: {
      ...quickEnvironment(),
      DATABASE_URL: url,
      LONGWATCH_DATA_DIR: makeTemporaryFolder("too-old"),
      LONGWATCH_PORT: "0",
    },
  }).catch((failed: unknown) => failed);
  expect(started).toMatchObject({ code: 1, stderr: expect.stringContaining(`\nlongwatch: ${named}`) });
});

test("migrate without DATABASE_URL names the setting and creates nothing", async () => {
  const { code, err } = await runStoreCommand(migrateCommand, {}, [], { now: Date.now() });
  expect([code, err]).toEqual([2, expect.stringContaining("DATABASE_URL: not set")]);
});
