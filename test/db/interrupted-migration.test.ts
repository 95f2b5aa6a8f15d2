import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { listMigrations, migrate } from "#db/migrate.ts";
import { createTestDatabase } from "../support/database.ts";
import { quickEnvironment } from "../support/quick-environment.ts";
import { readCatalog } from "./read-catalog.ts";

/** Waits longer for a lock than `longwatch migrate`, because on a busy machine a second process takes seconds to start. */
const PROGRAM = `import { migrate } from "#db/migrate.ts";
await migrate({ url: process.argv[1], lockTimeoutMs: 120_000 });`;
const WAIT = { timeout: 60_000, interval: 50 };

/** Migrates in a process of its own. */
function startMigrate(url: string): ChildProcess {
  const child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM, url], {
    cwd: path.join(import.meta.dirname, "../.."),
    stdio: ["ignore", "ignore", "inherit"],
    env: quickEnvironment(),
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** A database in which a migration waits before its last table, while the session of `holder` keeps its transaction. */
async function openBlockedDatabase() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { url } = database;
  const [holder, client] = [await connect(url), await connect(url)];
  const empty = await readCatalog(client);
  await holder.query("begin");
  await holder.query("create table replicas ()");
  const waits = async () => {
    const { rows } = await client.query<{ wait_event: string }>(
      `select wait_event from pg_stat_activity
       where datname = current_database() and application_name = 'longwatch migrate' order by 1`,
    );
    return rows.map(({ wait_event }) => wait_event);
  };
  return { url, holder, client, empty, waits };
}

const COUNT = "select count(*)::integer as applied from drizzle.__drizzle_migrations";

test("a migration that is killed in the middle changes nothing, and the next one succeeds", async () => {
  const { url, holder, client, empty, waits } = await openBlockedDatabase();
  const child = startMigrate(url);
  await expect.poll(waits, WAIT).toEqual(["transactionid"]);
  child.kill("SIGKILL");
  await once(child, "exit");
  await holder.query("rollback");
  await expect.poll(waits, WAIT).toEqual([]);
  expect(await readCatalog(client)).toEqual(empty);
  expect((await client.query("select to_regnamespace('drizzle')")).rows).toEqual([{ to_regnamespace: null }]);

  await migrate({ url });
  expect((await client.query(COUNT)).rows).toEqual([{ applied: listMigrations().length }]);
}, 120_000);

test("if two processes migrate at once, one waits, and it migrates when the other is killed in the middle", async () => {
  const { url, holder, client, waits } = await openBlockedDatabase();
  const first = startMigrate(url);
  await expect.poll(waits, WAIT).toEqual(["transactionid"]);
  const second = startMigrate(url);
  await expect.poll(waits, WAIT).toEqual(["advisory", "transactionid"]);
  first.kill("SIGKILL");
  const ended = once(second, "exit");
  await holder.query("rollback");
  expect(await ended).toEqual([0, null]);

  expect((await client.query(COUNT)).rows).toEqual([{ applied: listMigrations().length }]);
  const copy = await createTestDatabase(inject("migratedTemplate"));
  onTestFinished(() => copy.drop());
  expect(await readCatalog(client)).toEqual(await readCatalog(await connect(copy.url)));
}, 120_000);
