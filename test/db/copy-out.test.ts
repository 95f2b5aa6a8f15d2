import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import path from "node:path";
import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { expect, onTestFinished, test } from "vitest";
import { copyToFile } from "#db/postgres/copy.ts";
import { createTestDatabase } from "../support/database.ts";
import { overTcp } from "../support/over-tcp.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

/** CommandComplete with `COPY 3` and ReadyForQuery, in bytes: everything that follows the end of the rows. */
const LAST_MESSAGES = 12 + 6;
const LATE_MS = 20;

/** Returns a connection of a pool. Dropping the database may end it while it closes, which is no failure. */
async function openClient(connectionString: string): Promise<pg.PoolClient> {
  const pool = new pg.Pool({ connectionString });
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  const client = await pool.connect();
  client.on("error", () => undefined);
  onTestFinished(() => client.release());
  return client;
}

/** Returns the address of a server through a relay that hands over the end of each of its answers later than the rest. */
async function openLateRelay(url: string): Promise<string> {
  const target = new URL(overTcp(url));
  const { hostname, port } = target;
  const relay = createServer((near) => {
    const far = connect(Number(port), hostname);
    let sent = Promise.resolve();
    near.on("data", (chunk) => far.write(chunk));
    far.on("data", (chunk: Buffer) => {
      sent = sent.then(async () => {
        near.write(chunk.subarray(0, -LAST_MESSAGES));
        await new Promise((resolve) => setTimeout(resolve, LATE_MS));
        near.write(chunk.subarray(-LAST_MESSAGES));
      });
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void relay.close());
  await once(relay, "listening");
  target.port = String((relay.address() as AddressInfo).port);
  return target.href;
}

test("a COPY into a file returns the number of its rows if the server says so later than it sends the last row", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const client = await openClient(await openLateRelay(database.url));
  const file = path.join(makeTemporaryFolder("copy-out"), "rows");

  const stream = client.query(copyTo("copy (select * from generate_series(1, 3)) to stdout"));
  expect(await copyToFile(client, stream, file)).toBe(3);
  expect(readFileSync(file, "utf8")).toBe("1\n2\n3\n");
  expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
});

test("a COPY that the server stops fails with the server's error, and the connection takes the next statement", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const client = await openClient(database.url);
  await client.query("set statement_timeout = '100ms'");
  const file = path.join(makeTemporaryFolder("copy-out"), "rows");

  const stream = client.query(
    copyTo("copy (select n, pg_sleep(0.01) from generate_series(1, 9000) n) to stdout"),
  );
  await expect(copyToFile(client, stream, file)).rejects.toMatchObject({ code: "57014" });
  expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
});
