import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { ADVISORY_LOCKS } from "#db/postgres/transaction.ts";
import { createTestDatabase } from "../support/database.ts";
import { quickEnvironment } from "../support/quick-environment.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { nextFile, openBackupWorld, run, type Settings, search } from "./backup-world.ts";

const PROGRAM = path.join(import.meta.dirname, "..", "..", "src", "main.ts");
const WAIT = { timeout: 60_000, interval: 100 };
const world = await openBackupWorld();

/** Starts the program itself, in a process of its own. */
function start(settings: Settings, args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    stdio: "ignore",
    env: { ...quickEnvironment(), ...settings },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

async function openSession(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const SESSIONS = `select state, wait_event from pg_stat_activity
  where datname = current_database() and application_name = 'longwatch command'`;

async function listSessions(client: pg.Client) {
  return (await client.query<{ state: string; wait_event: string | null }>(SESSIONS)).rows;
}

test("a restore that is killed in the middle leaves a database without tables, and the same restore then succeeds", async () => {
  const backup = nextFile();
  expect(await run(world.settings, ["backup", "--out", backup])).toMatchObject({ code: 0 });
  const { url } = await createTestDatabase();
  const data = makeTemporaryFolder("killed");
  const settings = {
    DATABASE_URL: url,
    LONGWATCH_DATA_DIR: data,
    LONGWATCH_ARCHIVE_DIR: path.join(data, "archive"),
  };
  const session = await openSession(url);
  // The restore has loaded most tables when it waits here, before the first partition.
  await session.query("select pg_advisory_lock($1)", [ADVISORY_LOCKS.partitions]);
  const child = start(settings, ["restore", backup]);
  await expect
    .poll(() => listSessions(session), WAIT)
    .toContainEqual({ state: "active", wait_event: "advisory" });
  child.kill("SIGKILL");
  await once(child, "exit");
  await session.query("select pg_advisory_unlock($1)", [ADVISORY_LOCKS.partitions]);
  await expect.poll(() => listSessions(session), WAIT).toEqual([]);
  const left = await session.query("select from pg_class where relnamespace = 'public'::regnamespace");
  expect(left.rows).toEqual([]);
  expect(await run(settings, ["restore", backup])).toMatchObject({ code: 0 });
  expect(await search(settings)).toEqual(await search(world.settings));
}, 120_000);

test.each([
  ["SIGKILL", "leaves only a temporary file", ["backup.tar.tmp"]],
  ["SIGTERM", "leaves no file", []],
] as const)(
  "a backup that gets %s in the middle %s, and the same backup then succeeds",
  async (signal, _, left) => {
    const out = nextFile();
    const { pool } = world.database;
    await pool.query(
      `insert into leases (name, holder, expires_at) values ('archive', 'a test', now() + interval '1 hour')
     on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at`,
    );
    const session = await openSession(world.database.url);
    const child = start(world.settings, ["backup", "--out", out]);
    // The backup has its snapshot and waits for the archive's lease.
    await expect
      .poll(async () => (await listSessions(session)).map(({ state }) => state), WAIT)
      .toContain("idle in transaction");
    child.kill(signal);
    await once(child, "exit");
    expect(existsSync(out)).toBe(false);
    const names = readdirSync(path.dirname(out)).map((name) => name.replace(/\.[0-9a-f]{8}\./, "."));
    expect(names).toEqual(left);
    await pool.query("update leases set holder = null, expires_at = null where name = 'archive'");
    expect(await run(world.settings, ["backup", "--out", out])).toMatchObject({ code: 0 });
  },
  60_000,
);
