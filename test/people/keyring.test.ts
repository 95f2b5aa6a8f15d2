import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { openKeyring } from "#app/open-keyring.ts";
import { replaceKeyId } from "#db/people/pseudonymise.ts";
import { privacyCommand } from "#faces/cli/privacy/privacy.ts";
import { createStopStack } from "#lib/process.ts";
import { createSecret } from "#lib/secret.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { createPseudonymKeyring, prepareKey } from "#people/privacy/pseudonym-keyring.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";
import { silent } from "../ingest/ingest-support.ts";

const NOW = Date.UTC(2026, 10, 20, 12);
let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
});

afterEach(() => database.drop());

function makeFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-keyring-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const open = (dataDir: string, text: string | null = null) =>
  createPseudonymKeyring(
    { keyDir: dataDir, pseudonymKey: text === null ? null : createSecret(text) },
    database,
  ).open();

const run = (dataDir: string, line: string, env: Record<string, string> = {}) =>
  runStoreCommand(
    privacyCommand,
    { DATABASE_URL: database.url, LONGWATCH_DATA_DIR: dataDir, ...env },
    line.split(" "),
    { now: NOW },
  );

test("one process of a folder creates the key, readable by its user only; the database has only its fingerprint", async () => {
  const folder = makeFolder();
  const keys = await Promise.all([open(folder), open(folder), open(folder)]);
  expect(new Set(keys.map(({ id }) => id)).size).toBe(1);
  const file = path.join(folder, "pseudonym.key");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const { rows } = await database.pool.query("select key_id from pseudonym_keys");
  expect(rows).toEqual([{ key_id: keys[0]?.id }]);
  expect(JSON.stringify(rows)).not.toContain(readFileSync(file, "utf8").trim());
});

test("another folder's key, a lost one and another configured one are noticed, and none is made in their place", async () => {
  const folder = makeFolder();
  await open(folder);
  const other = makeFolder();
  await expect(open(other)).rejects.toThrow("pseudonym.key does not exist");
  await expect(open(folder, "a-configured-key-of-thirty-two-chars")).rejects.toMatchObject({
    code: "PSEUDONYM_KEY",
  });
  rmSync(path.join(folder, "pseudonym.key"));
  await expect(open(folder)).rejects.toThrow("privacy rotate-key --lost --yes");
});

test("a new key makes what the old one made unlinkable, and a running process goes over to it", async () => {
  const folder = makeFolder();
  const keyring = createPseudonymKeyring({ keyDir: folder, pseudonymKey: null }, database);
  const before = await keyring.open();
  const pseudonym = async () => (await run(folder, "pseudonym --ip 203.0.113.7")).out;
  const old = await pseudonym();
  expect((await run(folder, "rotate-key")).code).toBe(2);
  expect((await run(folder, "rotate-key --yes --by alice")).code).toBe(0);
  expect((await keyring.open()).id).not.toBe(before.id);
  expect(await pseudonym()).toMatch(/^anon-[a-z2-7]{13}-[a-z2-7]{13}\n$/);
  expect(await pseudonym()).not.toBe(old);
  const { rows } = await database.pool.query("select actor, action, details from audit_entries");
  expect(rows).toEqual([
    {
      actor: "alice",
      action: "pseudonym-key.rotated",
      details: { before: before.id, after: (await keyring.open()).id },
    },
  ]);
});

test("a configured key is put in use when it was changed, not when it is the same", async () => {
  const folder = makeFolder();
  const env = { LONGWATCH_PSEUDONYM_KEY: "a-configured-key-of-thirty-two-chars" };
  expect((await run(folder, "pseudonym --ip ::1", env)).code).toBe(0);
  expect((await run(folder, "rotate-key --yes", env)).err).toContain("is already the key in use");
  const changed = { LONGWATCH_PSEUDONYM_KEY: "another-configured-key-of-32-characters" };
  expect((await run(folder, "pseudonym --ip ::1", changed)).code).toBe(1);
  expect((await run(folder, "rotate-key --yes", changed)).code).toBe(0);
  expect((await run(folder, "pseudonym --ip ::1", changed)).code).toBe(0);
  expect((await run(folder, "pseudonym --ip ::1", env)).code).toBe(1);
});

test("while a tombstone keeps events out its key stays in use", async () => {
  const folder = makeFolder();
  const { id } = await open(folder);
  const insert = (until: number, ended: Date | null) =>
    database.pool.query(
      `insert into erasures (requested_at, until_at, ended_at, family, prefix, include_masked, key_id, hash, counts)
       values ($1, $1, $2, 4, 32, false, $3, $4, '{}')`,
      [new Date(until), ended, id, Buffer.from(String(until))],
    );
  await insert(NOW - 20 * DAY_MS, new Date(NOW));
  expect((await run(folder, "rotate-key --yes")).code).toBe(0);
  await insert(NOW - 73 * HOUR_MS, new Date(NOW));
  expect((await run(folder, "rotate-key --yes")).code).toBe(0);
  await insert(NOW - 71 * HOUR_MS, new Date(NOW));
  expect((await run(folder, "rotate-key --yes")).err).toContain("wait until 2026-11-20 13:00 UTC");
  await insert(NOW - DAY_MS, new Date(NOW));
  expect(await run(folder, "rotate-key --yes")).toMatchObject({
    code: 2,
    err: expect.stringContaining("in effect"),
  });
});

test("a rotation that was killed after the database knew the new key is completed by the next reader", async () => {
  const folder = makeFolder();
  await open(folder);
  const { key } = prepareKey({ keyDir: folder, pseudonymKey: null });
  await replaceKeyId(database.db, key.id, NOW);
  expect((await open(folder)).id).toBe(key.id);
  expect(readdirSync(folder)).toEqual(["pseudonym.key"]);
});

test("a rotation succeeds if a reader adopts its key between the commit and the command's own move", async () => {
  const folder = makeFolder();
  await open(folder);
  const { key, adopt } = prepareKey({ keyDir: folder, pseudonymKey: null });
  await replaceKeyId(database.db, key.id, NOW);
  await open(folder);
  adopt();
  expect((await open(folder)).id).toBe(key.id);
});

test("a rotation that was refused leaves the key in use where it was", async () => {
  const folder = makeFolder();
  const { id } = await open(folder);
  prepareKey({ keyDir: folder, pseudonymKey: null });
  expect((await open(folder)).id).toBe(id);
});

test("a key file that vanishes while the process runs is reported before the next start fails", async () => {
  const folder = makeFolder();
  const keyring = createPseudonymKeyring({ keyDir: folder, pseudonymKey: null }, database);
  const { id } = await keyring.open();
  expect(await keyring.findProblem()).toBeNull();
  rmSync(path.join(folder, "pseudonym.key"));
  expect(await keyring.findProblem()).toBe(
    `The pseudonym key ${id} is missing: this database was made with it, and ${path.join(folder, "pseudonym.key")} does not exist. This process still has the key.`,
  );
  expect((await keyring.open()).id).toBe(id);
});

test("a key file that cannot be read counts as missing", async () => {
  const folder = makeFolder();
  mkdirSync(path.join(folder, "pseudonym.key"));
  await expect(open(folder)).rejects.toMatchObject({ code: "PSEUDONYM_KEY" });
});

test("a process that serves HTTP only makes no key and needs none", async () => {
  const folder = makeFolder();
  const stack = createStopStack(() => undefined);
  const opened = (roles: ("http" | "ingest")[]) =>
    openKeyring(
      {
        config: { keyDir: folder, pseudonymKey: null, roles },
        database,
        log: silent,
        onChange: () => undefined,
      },
      stack,
    );
  await opened(["http"]);
  expect(readdirSync(folder)).toEqual([]);
  await opened(["ingest"]);
  rmSync(path.join(folder, "pseudonym.key"));
  await opened(["http"]);
  await expect(opened(["ingest"])).rejects.toMatchObject({ code: "USAGE" });
  await stack.stop();
});
