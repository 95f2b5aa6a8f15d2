import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { startTcpProxy } from "../faults/tcp-proxy.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

let postgres: TestDatabase;

beforeAll(async () => {
  postgres = await createTestDatabase();
});

afterAll(() => postgres.drop());

async function openThroughProxy(silentAfterMs: number) {
  const proxy = await startTcpProxy(Number(new URL(postgres.url).port));
  const url = proxy.through(postgres.url);
  const database = createDatabase({
    url,
    max: 1,
    applicationName: "silent",
    silentAfterMs,
    onError: () => undefined,
  });
  onTestFinished(async () => {
    await proxy.close();
    await database.close();
  });
  await database.pool.query("select 1");
  return { proxy, pool: database.pool };
}

test("a statement whose server takes connections and answers nothing is rejected, and a later one is answered", async () => {
  const { proxy, pool } = await openThroughProxy(500);
  proxy.behave({ isStalled: true });

  await expect(pool.query("select 2")).rejects.toThrow(/^no answer within 500 ms/);
  proxy.behave({ isStalled: false });
  await expect.poll(() => pool.query("select 3").then(() => "answered", String)).toBe("answered");
});

test("a statement that takes longer than a server may be silent is not ended while the server answers others", async () => {
  const { pool } = await openThroughProxy(5_000);

  expect((await pool.query("select pg_sleep(7)")).rowCount).toBe(1);
});
