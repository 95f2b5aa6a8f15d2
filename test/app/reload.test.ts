import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readRuntimeFile } from "#app/runtime-file.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { ask } from "../faces/http/api/api-world.ts";
import { makeKey } from "../faces/http/start-archive.ts";
import { startServiceProcess } from "../faults/service-process.ts";
import { findFreePort } from "../support/free-port.ts";

const PATIENCE = { timeout: 30_000, interval: 50 };

test("a running service takes a new configuration file on SIGHUP, and keeps the old one when the new has mistakes", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-reload-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const file = path.join(folder, "longwatch.yaml");
  const signIn = (role: string) =>
    `sign_in: { issuer: "https://login.example", client_id: x, claim: groups, roles: { desk: { role: ${role} } } }\n`;
  writeFileSync(file, `${signIn("operator")}channels: { first: { kind: terminal } }\n`);
  const basis = { issuer: "https://login.example", clientId: "x", claim: "groups", values: ["desk"] };
  await database.pool.query(
    `insert into sessions (id, key_id, person_name, roles, is_masked, user_agent, token_hash, token_ends_at, claims)
     values ('a1', 'person-1', 'ada', '{admin}', false, '', '\\x01', now() + interval '1 hour', $1)`,
    [basis],
  );
  const readSession = async () => {
    const read = "select roles, ended_at is null as is_live from sessions";
    const { rows } = await database.pool.query<{ roles: string[]; is_live: boolean }>(read);
    return rows[0]?.is_live === true ? rows[0].roles : null;
  };
  const port = await findFreePort();
  const service = startServiceProcess({
    LONGWATCH_PORT: String(port),
    DATABASE_URL: database.url,
    LONGWATCH_DATA_DIR: folder,
    LONGWATCH_ROLES: "alerts,http",
    LONGWATCH_CONFIG: file,
    LONGWATCH_PUBLIC_URL: "https://longwatch.example",
    EDGE_API_URL: "http://127.0.0.1:9",
    EDGE_API_KEY: "key",
    EDGE_SHIELD_ZONES: "101",
  });
  onTestFinished(async () => {
    service.child.kill("SIGKILL");
    await service.exited;
  });
  await expect.poll(() => service.printed(), PATIENCE).toContain("service started");
  // Nobody has used the session since the role was lowered.
  expect(await readSession()).toEqual(["operator"]);
  // The values that `config list` compares with.
  expect(readRuntimeFile(folder)?.settings).toMatchObject({
    LONGWATCH_ROLES: "alerts,http",
    REDIS_URL: null,
  });

  const parts = (file: string) =>
    `channels: { second: { kind: terminal }, third: { kind: terminal } }\n${file}`;
  writeFileSync(file, parts(signIn("reader")));
  service.child.kill("SIGHUP");
  await expect.poll(() => service.printed(), PATIENCE).toContain('"channels":["second","third"]');
  await expect.poll(readSession, PATIENCE).toEqual(["reader"]);
  // A reload takes every part of the file, or names it.
  expect(service.printed()).not.toContain("the next start applies");
  writeFileSync(
    file,
    parts(
      `forward: { disk: { kind: file, folder: ${folder} } }\nschedule: { poll-events: "*/30 * * * * *" }\nactions: { stopped: [tarpit] }\n`,
    ),
  );
  service.child.kill("SIGHUP");
  await expect
    .poll(() => service.printed(), PATIENCE)
    .toMatch(/"parts":\["forward","actions","schedule"\][^\n]*parts changed that the next start applies/);
  // This file has no sign_in.
  await expect.poll(readSession, PATIENCE).toBe(null);

  writeFileSync(
    file,
    "channels: { fourth: { kind: termnal }, hook: { kind: slack, url_env: SLACK_URL }, pager: { kind: slack, url_env: xoxb_pasted_secret } }\nchanels: {}\ndetection: { z: 99 }\n",
  );
  service.child.kill("SIGHUP");
  await expect.poll(() => service.printed(), PATIENCE).toContain("previous configuration kept");
  const printed = service.printed();
  for (const part of [
    "channels.fourth.kind",
    "chanels: is not a setting: did you mean channels?",
    "detection.z: 99",
    // Found by another check than the three before.
    'channels.hook.url_env: \\"SLACK_URL\\": must be the name of an environment variable that is set',
    "channels.pager.url_env: [not shown]: must be the name of",
  ])
    expect(printed).toContain(part);
  expect(printed).not.toContain("xoxb");

  // It is alive, and what is right again is taken.
  const known = "{ ip: [198.51.100.0/24], reason: our scanner }";
  writeFileSync(file, `channels: { fifth: { kind: terminal } }\ndetection: { known_sources: [${known}] }\n`);
  service.child.kill("SIGHUP");
  await expect.poll(() => service.printed(), PATIENCE).toContain('"channels":["fifth"]');
  expect(service.child.exitCode).toBeNull();
  // The routes read the same settings as the detector.
  const { key } = await makeKey(database, "reader");
  expect(await ask(`http://127.0.0.1:${port}`, "/api/v1/known-sources", key)).toMatchObject({
    items: [{ id: null, kind: "ip", pattern: "198.51.100.0/24", zoneIds: null, reason: "our scanner" }],
  });
});
