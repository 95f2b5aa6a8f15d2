import { once } from "node:events";
import { connect, createServer } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { readDatabaseUrl } from "#config/read-database-url.ts";
import { createDatabase } from "#db/client.ts";
import { refuseServer } from "#db/postgres/server.ts";
import { startRelay } from "../store/queue/support/relay.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

/** The test database's address with these hosts. */
function urlAt(hosts: string, query = ""): string {
  const { username, password, pathname } = new URL(database.url);
  const read = readDatabaseUrl(`postgres://${username}:${password}@${hosts}${pathname}${query}`);
  return "url" in read ? read.url : "";
}

function open(url: string) {
  const opened = createDatabase({ url, max: 2, applicationName: "longwatch test", onError: () => undefined });
  onTestFinished(() => opened.close());
  return opened.pool;
}

test("of several hosts the first one that answers is used, and the next one if that fails", async () => {
  const { port } = new URL(database.url);
  const relay = await startRelay(Number(port));
  onTestFinished(() => relay.close());
  const pool = open(urlAt(`127.0.0.1:1,127.0.0.1:${relay.port},127.0.0.1:${port}`));
  await pool.query("select 1");
  await relay.cut();
  // The broken connection, and the first one that meets the dead host.
  await expect
    .poll(() =>
      pool.query("select 1").then(
        () => "works",
        () => "failed",
      ),
    )
    .toBe("works");
});

test("if none of several hosts answers, the error is that of a host", async () => {
  await expect(open(urlAt("127.0.0.1:1,127.0.0.1:2")).query("select 1")).rejects.toMatchObject({
    code: "ECONNREFUSED",
  });
});

test("a database is reached by the folder of a socket", async () => {
  const folder = makeTemporaryFolder("socket");
  const target = Number(new URL(database.url).port);
  const server = createServer((near) => {
    const far = connect(target, "127.0.0.1");
    near.pipe(far).pipe(near);
    near.on("error", () => undefined);
    far.on("error", () => undefined);
  }).listen(path.join(folder, ".s.PGSQL.5432"));
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { rows } = await open(urlAt("", `?host=${folder}`)).query("select 1 as one");
  expect(rows).toEqual([{ one: 1 }]);
});

test.each(["LATIN1", "SQL_ASCII"])(
  "start and migrate refuse a database with encoding %s",
  async (encoding) => {
    const other = await createTestDatabase("template0", `encoding '${encoding}' locale 'C'`);
    onTestFinished(() => other.drop());
    await expect(refuseServer(other.url)).rejects.toThrow(
      `DATABASE_URL: the database's encoding is ${encoding}, which cannot hold every request: create the database with encoding UTF8`,
    );
  },
);
