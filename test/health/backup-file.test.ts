import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { open, readFile } from "node:fs/promises";
import path from "node:path";
import { zstdDecompressSync } from "node:zlib";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { ADVISORY_LOCKS } from "#db/postgres/transaction.ts";
import { listTar, toTarHeader } from "#lib/tar.ts";
import { createTestDatabase } from "../support/database.ts";
import { findProgram } from "../support/find-program.ts";
import { quickEnvironment } from "../support/quick-environment.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { nextFile, openBackupWorld, run, type Settings, search } from "./backup-world.ts";

/** The file of a backup: as standard tools read it, on a full disk, and after its process was killed. */

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

const missing = ["tar", "sha256sum"].filter((name) => findProgram(name) === null);
const whyNoTools = missing.length === 0 ? "" : ` (skipped: ${missing.join(", ")} not on PATH)`;

function call(folder: string, program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout;
}

test.skipIf(missing.length > 0)(
  `tar lists and extracts a backup, sha256sum checks its manifest, and zstd yields its rows${whyNoTools}`,
  async () => {
    const file = nextFile();
    expect(await run(world.settings, ["backup", "--out", file])).toMatchObject({ code: 0 });
    const folder = makeTemporaryFolder("extracted");
    const names = call(folder, "tar", "-tf", file).trim().split("\n");
    expect(names.slice(-2)).toEqual(["manifest.json", "manifest.json.sha256"]);
    expect(names).toContain("tables/waf_events/2026-11-18.copy.zst");
    call(folder, "tar", "-xf", file);
    expect(call(folder, "sha256sum", "--check", "manifest.json.sha256")).toBe("manifest.json: OK\n");
    const manifest = JSON.parse(await readFile(path.join(folder, "manifest.json"), "utf8")) as {
      members: { name: string; sha256: string }[];
      tables: { name: string; columns: string[]; parts: { member: string; rows: number }[] }[];
    };
    const sums = call(folder, "sha256sum", ...manifest.members.map(({ name }) => name));
    expect(sums).toBe(manifest.members.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(""));
    expect(manifest.members.map(({ name }) => name)).toEqual(names.slice(0, -2));
    for (const { columns, parts } of manifest.tables) {
      for (const { member, rows } of parts) {
        const text = zstdDecompressSync(await readFile(path.join(folder, member))).toString();
        const lines = text.split("\n").slice(0, -1);
        expect(lines).toHaveLength(rows);
        expect(lines.every((line) => line.split("\t").length === columns.length)).toBe(true);
      }
    }
  },
);

test("a member of more than 8 GiB has its size in the form of GNU tar", async () => {
  const file = nextFile("large.tar");
  const handle = await open(file, "w+");
  const bytes = 9 * 1_024 ** 3;
  await handle.write(toTarHeader("large", bytes, 0), 0, 512, 0);
  // The content is a hole in the file.
  await handle.truncate(512 + bytes + 1_024);
  expect(await listTar(handle)).toEqual([{ name: "large", offset: 512, bytes }]);
  await handle.close();
  const listed = missing.length > 0 ? ` ${bytes} ` : call(path.dirname(file), "tar", "-tvf", file);
  expect(listed).toContain(` ${bytes} `);
});

const disk = mountSmallDisk(1);
const whyNoDisk = disk === null ? " (skipped: no small disk can be mounted)" : "";

test.skipIf(disk === null)(
  `a backup that does not fit names the disk and leaves no file${whyNoDisk}`,
  async () => {
    onTestFinished(() => disk?.remove());
    const folder = disk?.folder ?? "";
    const { pool } = world.database;
    onTestFinished(async () => void (await pool.query("delete from quarantined_entries where zone_id = 2")));
    await pool.query(
      "insert into quarantined_entries (zone_id, route, reason, raw) select 2, 'list', 'r', sha256(n::text::bytea) from generate_series(1, 40000) n",
    );
    const { code, err } = await run(world.settings, ["backup", "--out", path.join(folder, "backup.tar")]);
    expect(code).toBe(1);
    expect(err).toMatch(
      /longwatch backup: the backup does not fit: the disk of \S+ \(mounted at \S+\) has 0 kB of .* free\. Free space, or write to another disk\n$/,
    );
    expect(readdirSync(folder)).toEqual([]);
  },
);
