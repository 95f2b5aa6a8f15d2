import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { loadSubject } from "#faces/cli/commands.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { call, startArchive } from "../http/start-archive.ts";
import { clearAudit } from "./clear-audit.ts";
import { runStoreCommand } from "./run-store-command.ts";

const keysCommand = await loadSubject("keys");

let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.pool.query("truncate api_keys");
  await clearAudit(database);
});

function run(...args: readonly string[]) {
  return runStoreCommand(keysCommand, { DATABASE_URL: database.url }, args, { now: Date.now() });
}

async function makeKey(...args: readonly string[]) {
  const { out } = await run("create", "--json", ...args);
  return JSON.parse(out) as { id: string; key: string; expiresAt: string | null };
}

async function audit() {
  const { rows } = await database.pool.query(
    "select actor, action, subject from audit_entries where action in ('key.created', 'key.revoked') order by id",
  );
  return rows as unknown[];
}

test("a key is printed once and works at once, for its role and zones", async () => {
  const { url } = await startArchive(database.url, {
    routes: [
      (app) =>
        void app.get(
          "/zones/:zone",
          { config: { access: { scope: "export", zone: "zone" } } },
          () => "yours",
        ),
    ],
  });
  const made = await run(
    "create",
    "--name",
    "siem",
    "--role",
    "exporter",
    "--zones",
    "101,102",
    "--by",
    "alice",
  );
  const key = /^ {2}(lw_\S+)$/m.exec(made.out)?.[1] ?? "";

  expect(made).toMatchObject({ code: 0, err: "" });
  expect(made.out).toMatch(
    /^[0-9a-f]{12} {2}siem: exporter; zone 101, 102; until it is revoked; never used\n/,
  );
  expect((await call(url, "/zones/102", key)).status).toBe(200);
  expect((await call(url, "/zones/103", key)).status).toBe(403);
  expect((await call(url, "/apikey", key)).status).toBe(403);
  const listed = await run("list", "--all");
  expect(listed.out).toContain("siem");
  expect(listed.out).not.toContain(key.split("_")[2]);
  expect(await audit()).toMatchObject([{ actor: "alice", action: "key.created" }]);
});

test("a key expires after what was said", async () => {
  const { expiresAt } = await makeKey("--name", "x", "--role", "reader", "--expires", "12h");
  const hours = (Date.parse(expiresAt ?? "") - Date.now()) / 3_600_000;

  expect(hours).toBeGreaterThan(11.9);
  expect(hours).toBeLessThanOrEqual(12.1);
});

test("a key is revoked by its id or its name, once, and leaves the list", async () => {
  const { url } = await startArchive(database.url);
  const one = await makeKey("--name", "one", "--role", "reader");
  const two = await makeKey("--name", "two", "--role", "reader");

  expect(await run("revoke", one.id, "--by", "bob")).toMatchObject({
    code: 0,
    out: `key ${one.id} is revoked.\n`,
  });
  expect((await call(url, "/metrics", one.key)).status).toBe(401);
  expect((await run("revoke", one.id)).out).toContain("was already revoked");
  expect(await run("revoke", "two")).toMatchObject({ code: 0 });
  expect((await call(url, "/metrics", two.key)).status).toBe(401);
  expect((await run("list")).out).toBe("No keys.\n");
  expect((await run("list", "--all")).out).toMatch(/^KEY +NAME +ROLE .*\n.*two.*revoked.*\n.*one.*revoked/);
  expect((await audit()).slice(2)).toEqual([
    { actor: "bob", action: "key.revoked", subject: `key ${one.id}` },
    { actor: expect.any(String), action: "key.revoked", subject: `key ${two.id}` },
  ]);
});

test("a name that several keys have revokes none of them, and the ids are named", async () => {
  const [one, two] = [
    await makeKey("--name", "grafana", "--role", "reader"),
    await makeKey("--name", "grafana", "--role", "reader"),
  ];
  const refused = await run("revoke", "grafana");

  expect(refused.code).toBe(2);
  expect(refused.err).toContain(`name one by its id: ${one.id}, ${two.id}`);
  expect((await run("revoke", one.id)).code).toBe(0);
  expect(await run("revoke", "grafana")).toMatchObject({ code: 0, out: `key ${two.id} is revoked.\n` });
});

test("a key that there is not is an error", async () => {
  expect(await run("revoke", "nobody")).toMatchObject({
    code: 1,
    err: 'longwatch keys revoke: There is no key "nobody".\n',
  });
});

test("every mistake is named at once, and nothing is made", async () => {
  const refused = await run("create", "--role", "root", "--zones", "101,x", "--expires", "1y", "more");

  expect(refused.code).toBe(2);
  for (const text of [
    "5 mistakes",
    "--name is missing",
    '--role "root" must be one of feed, reader, exporter, operator, admin',
    '--zones "x" must be a number',
    '--expires "1y" must be hours or days such as 12h or 90d, at most 3650d',
    '"more" is not an argument or option of this command',
  ])
    expect(refused.err).toContain(text);
  expect(await run("create", "--name", "x", "--role", "admin", "--masked")).toMatchObject({ code: 2 });
  expect(await run("revoke")).toMatchObject({ code: 2 });
  expect((await database.pool.query("select from api_keys")).rowCount).toBe(0);
});
