import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { parse } from "yaml";

const COMPOSE = path.join(import.meta.dirname, "../../docker-compose.yml");

/** Runs what the container does before the image's own start script, in a folder, and returns what it left there. */
function prepare(folder: string) {
  const { services } = parse(readFileSync(COMPOSE, "utf8")) as {
    services: { postgres: { entrypoint: string[] } };
  };
  const script = (services.postgres.entrypoint[2] ?? "")
    .replaceAll("$$", "$")
    .replaceAll(/ (\/run|\/docker)/g, ` ${folder}$1`);
  const moved = script.replace("$(cat /run", `$(cat ${folder}/run`);
  const output = execFileSync("sh", ["-euc", moved, "postgres"], {
    encoding: "utf8",
    env: { PATH: `${folder}/bin:/usr/bin:/bin` },
  });
  const read = (file: string) => readFileSync(path.join(folder, file), "utf8");
  return {
    output,
    url: read("run/longwatch/database-url"),
    sql: read("docker-entrypoint-initdb.d/longwatch.sql"),
  };
}

test("S21: the compose file's service owns its database and is no superuser; nobody has the superuser's password", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-compose-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ["run/longwatch", "docker-entrypoint-initdb.d", "bin"])
    mkdirSync(path.join(folder, name), { recursive: true });
  const stub = path.join(folder, "bin/docker-entrypoint.sh");
  writeFileSync(stub, `#!/bin/sh\nprintf %s "$POSTGRES_PASSWORD"`);
  chmodSync(stub, 0o755);
  const first = prepare(folder);
  const again = prepare(folder);

  expect({ url: again.url, sql: again.sql }).toEqual({ url: first.url, sql: first.sql });
  expect(first.output).toMatch(/^[0-9a-f]{48}$/);
  expect(again.output).not.toBe(first.output);
  expect(first.url).not.toContain(first.output);

  const name = `lw_${randomUUID().replaceAll("-", "").slice(0, 12)}`;
  const server = new pg.Client({ connectionString: inject("postgresUrl") });
  await server.connect();
  onTestFinished(async () => {
    await server.query(`drop database ${name} with (force)`);
    await server.query(`drop role ${name}`);
    await server.end();
  });
  for (const statement of first.sql.replaceAll("longwatch", name).trim().split("\n"))
    await server.query(statement);
  const given = new URL(inject("postgresUrl"));
  const { username, password, pathname } = new URL(first.url);
  expect({ username, pathname }).toEqual({ username: "longwatch", pathname: "/longwatch" });
  Object.assign(given, { username: name, password, pathname: `/${name}` });
  const client = new pg.Client({ connectionString: given.href });
  client.on("error", () => undefined);
  await client.connect();
  const { rows } = await client.query(
    "select rolsuper, rolcreaterole from pg_roles where rolname = current_user",
  );
  await client.query("create schema own");
  await client.end();
  expect(rows).toEqual([{ rolsuper: false, rolcreaterole: false }]);
});
