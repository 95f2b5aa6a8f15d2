import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { createDatabase, type Database } from "#db/client.ts";
import { areWritersAtWork, readRoleRights } from "#db/health/server-facts.ts";
import { migrate } from "#db/migrate.ts";
import { findExcess, reportExcessRights } from "#health/doctor/report-excess-rights.ts";
import { createLog } from "#lib/log.ts";
import { createSecret } from "#lib/secret.ts";
import { createAlertWorld } from "../alerts/alert-world.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { ask } from "../faces/http/api/api-world.ts";
import { makeKey, startArchive } from "../faces/http/start-archive.ts";
import { createTestDatabase } from "../support/database.ts";

const SQL = readFileSync(path.join(import.meta.dirname, "../../docs/database-roles.sql"), "utf8");
const PASSWORD = "only-of-this-test";

function connect(url: string): Database {
  const database = createDatabase({ url, max: 3, applicationName: "test", onError: () => undefined });
  onTestFinished(() => database.close());
  return database;
}

/** A database with the documented roles, under names of its own: roles belong to the whole server. */
async function openWithRoles() {
  const empty = await createTestDatabase();
  const admin = connect(empty.url);
  const suffix = randomUUID().replaceAll("-", "").slice(0, 12);
  const names = { owner: `lw_${suffix}`, serve: `lw_${suffix}_serve` };
  const script = SQL.replace(/\blongwatch_serve\b/g, names.serve).replace(/\blongwatch\b/g, names.owner);
  onTestFinished(async () => {
    await empty.drop();
    const server = createDatabase({
      url: inject("postgresUrl"),
      max: 1,
      applicationName: "test",
      onError: () => undefined,
    });
    await server.pool.query(`drop role ${names.serve}; drop role ${names.owner}`);
    await server.close();
  });
  await admin.pool.query(script);
  const urlOf = (role: string) => {
    const url = new URL(empty.url);
    url.username = role;
    url.password = PASSWORD;
    return url.href;
  };
  for (const role of Object.values(names))
    await admin.pool.query(`alter role ${role} password '${PASSWORD}'`);
  const urls = { owner: urlOf(names.owner), serve: urlOf(names.serve) };
  await migrate({ url: urls.owner });
  await admin.pool.query(script);
  return { admin, urls, names };
}

test("S21: the documented roles do: one migrates and owns, the other answers, and neither has more than it needs", async () => {
  const { urls, names } = await openWithRoles();
  const owner = connect(urls.owner);
  const serve = connect(urls.serve);
  await migrate({ url: urls.serve });
  const [ownerRights, serveRights] = [await readRoleRights(owner.db), await readRoleRights(serve.db)];

  expect(ownerRights).toMatchObject({ role: names.owner, isSuperuser: false, excess: [], ownsAudit: true });
  expect(serveRights).toMatchObject({ role: names.serve, isSuperuser: false, excess: [], ownsAudit: false });
  expect(findExcess(ownerRights, { roles: ["ingest", "derive"] })).toEqual([]);
  expect(findExcess(serveRights, { roles: ["http"] })).toEqual([]);
  expect(findExcess(ownerRights, { roles: ["http"] })[0]?.excess).toContain("only answers");
  for (const statement of [
    "update audit_entries set actor = ''",
    "drop trigger audit_entries_no_change on audit_entries",
    "delete from waf_events",
    "update waf_events set ip = ''",
    "create table more ()",
    "create schema more",
    "drop table waf_events",
    "truncate spikes",
    "copy (select 1) to program 'true'",
    "delete from api_keys",
  ])
    await expect(serve.pool.query(statement)).rejects.toMatchObject({ code: "42501" });
});

test("S16: an audit trail of another owner cannot be changed by the role that copies and erases either", async () => {
  const { admin, urls, names } = await openWithRoles();
  const privacy = readFileSync(path.join(import.meta.dirname, "../../docs/privacy.md"), "utf8");
  const statements = /```sql\n(alter table audit_entries[^`]*)```/.exec(privacy)?.[1] ?? "";
  const { rows } = await admin.pool.query<{ me: string }>("select current_user as me");
  await admin.pool.query(
    statements.replaceAll("longwatch", names.owner).replaceAll("postgres", rows[0]?.me ?? ""),
  );
  const owner = connect(urls.owner);

  await owner.pool.query("insert into audit_entries (actor, action, subject) values ('a', 'b', 'c')");
  for (const statement of [
    "delete from audit_entries",
    "drop trigger audit_entries_no_change on audit_entries",
    "create or replace function refuse_audit_change() returns trigger language plpgsql as 'begin return new; end'",
    "drop table audit_entries",
    "alter table audit_entries disable trigger user",
  ])
    await expect(owner.pool.query(statement)).rejects.toMatchObject({ code: "42501" });
});

test("S21: over the role that answers, everything works that is done over HTTP", async () => {
  const { urls } = await openWithRoles();
  const owner = { ...connect(urls.owner), url: urls.owner, errors: [], drop: async () => undefined };
  const world = createAlertWorld(owner);
  await world.openSpike(0);
  await world.runAt(0);
  const { url, lines } = await startArchive(urls.serve, {}, {}, { zoneIds: [101] });
  const { key } = await makeKey(connect(urls.serve), "admin");
  const post = (body: object, status = 200) => ({ method: "POST", body: JSON.stringify(body), status });
  const window = { from: Date.now() - 3_600_000, to: Date.now() };
  const { items } = await ask<{ items: { id: number }[] }>(url, "/api/v1/alerts", key);

  const made = await ask(url, "/api/v1/keys", key, post({ name: "n", role: "reader" }, 201));
  await ask(url, `/api/v1/keys/${String(made["id"])}`, key, { method: "DELETE" });
  await ask(url, `/api/v1/alerts/${items[0]?.id}/ack`, key, { method: "POST" });
  await ask(url, `/api/v1/alerts/${items[0]?.id}/resolve`, key, { method: "POST" });
  const wanted = { matchers: { zone: [101] }, reason: "test", durationMinutes: 5 };
  const silence = await ask(url, "/api/v1/silences", key, post(wanted, 201));
  await ask(url, `/api/v1/silences/${String(silence["id"])}`, key, { method: "DELETE" });
  for (const [path, body] of [
    ["known-sources", { ua: "Pingdom*", reason: "monitor" }],
    ["notes", { text: "deploy 1.4.2", zone: 101 }],
  ] as const) {
    const { id } = await ask<{ id: number }>(url, `/api/v1/${path}`, key, post(body, 201));
    await ask(url, `/api/v1/${path}/${id}`, key, { method: "DELETE" });
  }
  await ask(url, "/shield/event-logs/101/search", key, post({ ...window, groupBy: ["ruleId"], buckets: 9 }));
  await ask(url, "/shield/event-logs/101/search", key, post({ ...window, query: "x" }));
  await ask(url, "/shield/event-logs/101/export", key, post(window)).catch(noJson);
  for (const path of ["coverage", "gaps", "deliveries", "zones", "status", "rules", "spikes", "keys"])
    await ask(url, `/api/v1/${path}`, key);
  await ask(url, "/apikey", key);
  const { rows } = await owner.pool.query<{ action: string }>("select distinct action from audit_entries");
  expect(lines.join("")).not.toMatch(/permission denied|request failed/);
  expect(rows.map(({ action }) => action).sort()).toEqual([
    "alert.acknowledged",
    "alert.resolved",
    "events.exported",
    "key.created",
    "key.revoked",
    "known-source.added",
    "known-source.removed",
    "note.added",
    "note.deleted",
    "silence.added",
    "silence.expired",
  ]);
});

/** An export without rows is the header only. */
function noJson(thrown: Error): void {
  expect(thrown.message).toMatch(/timestamp/);
}

test("S21: a start as a superuser says so once, with what to do; the embedded database is its own", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const lines: string[] = [];
  const log = createLog({ level: "info", stream: { write: (line) => lines.push(line) } });
  const redisUrl = createSecret("redis://:canary@redis.internal:6379");
  await reportExcessRights(database, { databaseUrl: null, redisUrl, roles: ["http"] }, log);
  expect(lines).toEqual([]);

  await reportExcessRights(
    database,
    { databaseUrl: createSecret(database.url), redisUrl, roles: ["http"] },
    log,
  );
  const said = lines.join("");
  expect(said).toContain("is a superuser");
  expect(said).toContain("docs/database-roles.sql");
  expect(said).toContain("connection to Redis is not encrypted, as its default user");
  expect(said).not.toContain("canary");
});

test("S21: a connection that others can read is reported; a connection inside this machine is not", () => {
  const rights = { role: "r", isSuperuser: false, excess: [], ownsAudit: false } as const;
  const told = (clientAddress: string | null, isEncrypted = false) =>
    findExcess({ ...rights, clientAddress, isEncrypted }, { roles: ["http"] }).length;

  expect(told("10.0.0.5")).toBe(1);
  for (const address of ["127.0.0.1", "::1", null]) expect(told(address)).toBe(0);
  expect(told("10.0.0.5", true)).toBe(0);
});

test("the role that answers sees that the other's sessions are at work, so that costly searches step back", async () => {
  const { urls, names } = await openWithRoles();
  const onError = () => undefined;
  const owner = createDatabase({ url: urls.owner, max: 1, applicationName: names.owner, onError });
  onTestFinished(() => owner.close());
  const serve = connect(urls.serve);
  const client = await owner.pool.connect();
  expect(await areWritersAtWork(serve.db, [names.owner])).toBe(false);
  await client.query("begin");

  expect(await areWritersAtWork(serve.db, [names.owner])).toBe(true);
  client.release(true);
});
