import { existsSync, statSync } from "node:fs";
import path from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { listMigrations } from "#db/migrate.ts";
import { openBackup } from "#health/backup/open-backup.ts";
import { NOW, ZONE } from "../archive/files/archive-world.ts";
import { createDatabaseBefore } from "../db/before-baseline.ts";
import { storeEvents } from "../db/new-events.ts";
import { makeEvent } from "../detection/trend-support.ts";
import { createTestDatabase } from "../support/database.ts";
import { findOlderServer, startOlderServer } from "../support/older-postgres.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { createIn, nextFile, openBackupWorld, run, type Settings, search } from "./backup-world.ts";

const older = findOlderServer();
let server: Awaited<ReturnType<typeof startOlderServer>> | null = null;
const world = await openBackupWorld();

beforeAll(async () => {
  if (typeof older !== "string") server = await startOlderServer(older);
}, 60_000);

afterAll(() => server?.stop());

async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

/** Hashes of the rows of every table that no backup or restore changes. */
async function hashTables(file: string): Promise<Record<string, string>> {
  const { manifest } = await openBackup(file, {
    onProgress: () => undefined,
    signal: new AbortController().signal,
  });
  const changed = /^tables\/(?:audit_entries|leases|channel_states)\./;
  return Object.fromEntries(
    manifest.members.flatMap(({ name, sha256 }) => (changed.test(name) ? [] : [[name, sha256]])),
  );
}

function restored(url: string): Settings {
  const data = makeTemporaryFolder("restored");
  return { LONGWATCH_DATA_DIR: data, LONGWATCH_ARCHIVE_DIR: path.join(data, "archive"), DATABASE_URL: url };
}

const why = typeof older === "string" ? ` (skipped: ${older})` : "";

test(`a backup moves from the embedded Postgres to an older server and back, and every row, file and search answer is the same${why}`, async () => {
  const before = await search(world.settings);
  expect(before).toMatchObject({ code: 0, err: "" });
  expect(before.out.split("\n").length).toBeGreaterThan(40);
  const first = nextFile();
  const made = await run(world.settings, ["backup", "--out", first]);
  expect(made).toMatchObject({ code: 0, err: "" });
  expect(made.out).toMatch(/^Wrote \S+: \d+ rows as of .* UTC, 2 files of the archive, \d+ kB\.\n/);
  expect(made.out).toContain(`the pseudonym key. Keep the file ${path.join(world.data, "pseudonym.key")}`);
  expect(statSync(first).mode & 0o777).toBe(0o600);

  if (server !== null) await createIn(server.url("postgres"), "moved");
  const moved = restored(server?.url("moved") ?? (await createTestDatabase()).url);
  const move = await run(moved, ["restore", first, "--json"]);
  expect(move).toMatchObject({ code: 0, err: "" });
  expect(JSON.parse(move.out)).toMatchObject({
    archiveFiles: 2,
    missingFiles: [],
    unknownTables: [],
    validKeys: expect.arrayContaining([expect.objectContaining({ name: "grafana" })]),
    keyProblem: expect.stringContaining("pseudonym.key does not exist"),
  });
  expect(await search(moved)).toEqual(before);
  const second = nextFile();
  expect(await run(moved, ["backup", "--out", second])).toMatchObject({ code: 0 });
  const verified = await run(moved, ["archive", "verify"]);
  expect(verified).toMatchObject({ code: 0, out: expect.stringContaining("nothing differs") });
  const back = restored((await createTestDatabase()).url);
  expect(await run(back, ["restore", second])).toMatchObject({ code: 0, err: "" });
  expect(await search(back)).toEqual(before);
  const third = nextFile();
  expect(await run(back, ["backup", "--out", third])).toMatchObject({ code: 0 });
  const hashes = await hashTables(first);
  expect(Object.keys(hashes).length).toBeGreaterThan(40);
  expect(await hashTables(second)).toEqual(hashes);
  expect(await hashTables(third)).toEqual(hashes);
}, 120_000);

test("a restored database takes new events, numbers new rows onwards and has nobody's lease, process or session", async () => {
  const { url } = await createTestDatabase();
  await query(
    world.database.url,
    `insert into leases (name, holder, expires_at, fence) values ('x', 'somebody', now() + interval '1 hour', 7);
     insert into replicas (pid, id, host, version, roles, zone_ids) values (1, 'r', 'h', 'v', '{}', '{}');
     insert into sessions (id, key_id, user_agent, token_hash) values ('s', 'k', '', 'x');
     insert into sign_in_tokens (expires_at, key_id, token_hash) values (now() + interval '1 hour', 'k', 'x')`,
  );
  const file = nextFile();
  expect(await run(world.settings, ["backup", "--out", file])).toMatchObject({ code: 0 });
  expect(await run(restored(url), ["restore", file])).toMatchObject({ code: 0 });
  expect(
    await query(url, "select name from leases where holder is not null or expires_at is not null"),
  ).toEqual([]);
  expect(await query(url, "select fence::integer from leases where name = 'x'")).toEqual([{ fence: 7 }]);
  for (const table of ["replicas", "sessions", "sign_in_tokens"])
    expect(await query(url, `select from ${table}`)).toEqual([]);
  const [last] = await query(world.database.url, "select last_value::integer as id from alerts_id_seq");
  const countTransitions = async () => (await query(url, "select from alert_transitions")).length;
  const transitions = await countTransitions();
  const insert = `insert into alerts (fired_at, kind, fingerprint, transitions) values (now(), 'spike', 'g', '[{}]')
    returning id::integer`;
  expect(await query(url, insert)).toEqual([{ id: Number(last?.["id"]) + 1 }]);
  // The triggers work again.
  expect(await countTransitions()).toBe(transitions + 1);
  await expect(query(url, "delete from audit_entries")).rejects.toThrow(/audit/);
  const onError = () => undefined;
  const database = createDatabase({ url, max: 2, applicationName: "longwatch test", onError });
  const event = makeEvent({ logId: "after", occurredAt: NOW - 30_000 });
  expect(await storeEvents(database, ZONE, [event], { expectNew: true })).toMatchObject({ inserted: 1 });
  await database.close();
});

test("the settings of the role and the database change no value in a backup", async () => {
  const [plain, odd] = [nextFile(), nextFile()];
  expect(await run(world.settings, ["backup", "--out", plain])).toMatchObject({ code: 0 });
  const [row] = await query(world.database.url, "select current_database() as name");
  const name = String(row?.["name"]);
  const settings = ["datestyle = 'German'", "bytea_output = 'escape'", "extra_float_digits = -9"];
  for (const setting of settings) await query(world.database.url, `alter database ${name} set ${setting}`);
  const made = await run(world.settings, ["backup", "--out", odd]);
  await query(world.database.url, `alter database ${name} reset all`);
  expect(made).toMatchObject({ code: 0 });
  expect(await hashTables(odd)).toEqual(await hashTables(plain));
});

test("a backup of a database that was migrated in steps is restored and brought to this version", async () => {
  const migrations = listMigrations();
  const [from, into] = [await createDatabaseBefore(), await createTestDatabase()];
  await query(
    from.url,
    "insert into silences (starts_at, expires_at, matchers, created_by, reason) values (now(), now() + interval '1 hour', '{}', 'alice', 'old')",
  );
  const file = nextFile();
  expect(await run(restored(from.url), ["backup", "--out", file])).toMatchObject({ code: 0 });
  expect(await run(restored(into.url), ["restore", file])).toMatchObject({ code: 0 });
  const ledger =
    "select max(created_at)::float8 as latest, count(*)::integer from drizzle.__drizzle_migrations";
  expect(await query(into.url, ledger)).toEqual([{ latest: migrations.at(-1), count: migrations.length }]);
  expect(await query(into.url, "select reason from silences")).toEqual([{ reason: "old" }]);
});

test("a backup holds one moment: what is stored while it is made is not in it, and no table can vanish", async () => {
  const { pool } = world.database;
  const keeper = await pool.connect();
  const file = nextFile();
  try {
    // The backup waits for the archive's lease behind its snapshot.
    await keeper.query(
      "insert into leases (name, holder, expires_at) values ('archive', 'a test', now() + interval '1 hour') on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at",
    );
    const running = run(world.settings, ["backup", "--out", file]);
    // A transaction that has begun has no snapshot before its first statement.
    await expect
      .poll(() =>
        query(
          world.database.url,
          "select from pg_stat_activity where state = 'idle in transaction' and backend_xmin is not null and datname = current_database()",
        ),
      )
      .not.toEqual([]);
    await keeper.query(
      "insert into alerts (fired_at, kind, fingerprint, transitions) values (now(), 'spike', 'late', '[{}]')",
    );
    await keeper.query("set lock_timeout = '50ms'");
    await expect(keeper.query("drop table waf_events_20261118")).rejects.toMatchObject({ code: "55P03" });
    await keeper.query("reset lock_timeout");
    await keeper.query("update leases set holder = null, expires_at = null where name = 'archive'");
    expect(await running).toMatchObject({ code: 0 });
  } finally {
    keeper.release();
  }
  const { url } = await createTestDatabase();
  expect(await run(restored(url), ["restore", file])).toMatchObject({ code: 0 });
  expect(await query(url, "select from alerts where fingerprint = 'late'")).toEqual([]);
  await pool.query("delete from alerts where fingerprint = 'late'");
});

test("restore names the keys that were revoked and the erasures that were made since the backup", async () => {
  const file = nextFile();
  await run(world.settings, ["keys", "create", "--name", "siem", "--role", "exporter"]);
  expect(await run(world.settings, ["backup", "--out", file])).toMatchObject({ code: 0 });
  const [key] = await query(world.database.url, "select key_id from api_keys where name = 'siem'");
  const keyId = String(key?.["key_id"]);
  await run(world.settings, ["keys", "revoke", keyId]);
  await query(
    world.database.url,
    `insert into erasures (requested_at, until_at, zone_id, family, prefix, include_masked, key_id, hash, counts)
       values ('2026-11-20 10:00Z', '2026-11-20 10:00Z', 101, 4, 32, false, 'k', 'h', '{}');
     insert into audit_entries (actor, action, subject, details) values ('alice', 'erasure.requested', 'x',
       jsonb_build_object('erasure', (select max(id) from erasures), 'reason', 'ticket 7'))`,
  );
  const [one, two] = [await createTestDatabase(), await createTestDatabase()];
  const known = await run(restored(one.url), ["restore", file, "--old-database", world.database.url]);
  expect(known).toMatchObject({ code: 0, err: "" });
  expect(known.out).toMatch(
    /1 key was revoked after the backup and is valid again\. Revoke:\n.*keys revoke \w+ {3}# siem, revoked/,
  );
  expect(known.out).toContain(keyId);
  expect(known.out).toMatch(/1 erasure was made after the backup\. Repeat it before .* erase --ip/);
  expect(known.out).toContain("2026-11-20 10:00 UTC: an IPv4 address, zone 101, by alice: ticket 7");
  const unknown = await run(restored(two.url), ["restore", file]);
  expect(unknown.out).toMatch(
    /2 keys of the backup are valid\. Revoke again what was revoked after .* UTC:\n(?:.*\n)?.*grafana/,
  );
  expect(unknown.out).toMatch(/Repeat the erasures that were made after .* UTC/);
});

test("with --without-archive the backup names the files, and restore says which are missing", async () => {
  const file = nextFile();
  const made = await run(world.settings, ["backup", "--out", file, "--without-archive", "--json"]);
  expect(JSON.parse(made.out)).toMatchObject({ archiveFiles: 0, archiveFilesOutside: 2 });
  const { url } = await createTestDatabase();
  const { out } = await run(restored(url), ["restore", file]);
  expect(out).toMatch(
    /2 files of the archive are neither in the backup nor in the archive, the first is events\/zone=101/,
  );
  const again = await createTestDatabase();
  const settings = { ...world.settings, DATABASE_URL: again.url };
  expect(JSON.parse((await run(settings, ["restore", file, "--json"])).out)).toMatchObject({
    missingFiles: [],
  });
  expect(existsSync(path.join(world.folder, "archive.json"))).toBe(true);
});
