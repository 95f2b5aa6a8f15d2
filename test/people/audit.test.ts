import { afterEach, beforeEach, expect, test } from "vitest";
import { parseConfig } from "#config/config.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { auditConfig } from "#people/audit-trail.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { runCommand } from "./erasure-world.ts";

let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
});

afterEach(() => database.drop());

const write = (action: string, details = {}) =>
  writeAuditEntry(database.db, { actor: "alice\u001b[2J", action, subject: "thing \u202e1", details });

test("an entry can be neither changed nor deleted, and the table not be emptied", async () => {
  await write("thing.done");
  for (const statement of [
    "update audit_entries set actor = 'mallory'",
    "delete from audit_entries",
    "truncate audit_entries",
    "insert into audit_entries (actor, action, subject) values ('a', 'b', 'c'); delete from audit_entries",
  ])
    await expect(database.pool.query(statement)).rejects.toMatchObject({ code: "42501" });
  const { rows } = await database.pool.query("select actor from audit_entries");
  expect(rows).toEqual([{ actor: "alice\u001b[2J" }]);
});

test("the list is newest first, by kind, since when, at most so many, and harmless to a terminal", async () => {
  for (const action of ["thing.done", "thing.undone", "other.done", "thingy"])
    await write(action, { text: "\u001b]0;x" });
  const list = async (args = "") =>
    (await runCommand(database, `audit list${args}`, { now: Date.now() })).out;
  const actions = (out: string) =>
    [...out.matchAll(/ {3}(thing\.\w+|other\.done|thingy) {3}/g)].map(([, action]) => action);
  const all = await list();
  expect(actions(all)).toEqual(["thingy", "other.done", "thing.undone", "thing.done"]);
  // oxlint-disable-next-line no-control-regex
  expect(all).not.toMatch(/[\u001b\u202e]/);
  expect(actions(await list(" --action thing."))).toEqual(["thing.undone", "thing.done"]);
  expect(actions(await list(" --action thing.done"))).toEqual(["thing.done"]);
  expect(actions(await list(" --limit 1"))).toEqual(["thingy"]);
  expect(await list(" --since +1h")).toBe("No entry matches.\n");
  const wrong = await runCommand(database, "audit list --since x --limit 0 --deep", { now: Date.now() });
  expect(wrong.code).toBe(2);
  for (const named of ['--since "x"', '--limit "0"', '"--deep" is not']) expect(wrong.err).toContain(named);
});

test("settings are entered when they are others than before, and no secret with them", async () => {
  const enter = (env: Record<string, string>) => {
    const config = parseConfig(env);
    return auditConfig(database, config, config.alerting);
  };
  const secret = "s3cret-of-thirty-two-characters!!";
  await enter({});
  await enter({});
  await enter({
    LONGWATCH_IP_DAYS: "7",
    LONGWATCH_PSEUDONYM_KEY: secret,
    DATABASE_URL: `postgres://u:${secret}@h/d`,
  });
  await enter({ LONGWATCH_PORT: "9", LONGWATCH_IP_DAYS: "7", LONGWATCH_PSEUDONYM_KEY: secret });
  const opened = { LONGWATCH_METRICS_PUBLIC: "true", LONGWATCH_ALLOW_PRIVATE_WEBHOOKS: "true" };
  await enter({ ...opened, LONGWATCH_IP_DAYS: "7", LONGWATCH_PSEUDONYM_KEY: secret });
  const { rows } = await database.pool.query<{ details: { retention: { ipDays: number } } }>(
    "select action, details from audit_entries order by id",
  );
  expect(rows.map(({ details }) => details.retention.ipDays)).toEqual([90, 7, 7]);
  expect(rows.at(-1)?.details).toMatchObject({ areMetricsPublic: true, allowsPrivateWebhooks: true });
  expect(JSON.stringify(rows)).not.toContain("s3cret");
});
