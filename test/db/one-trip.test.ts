import { expect, onTestFinished, test } from "vitest";
import { inOneTrip } from "#db/postgres/transaction.ts";
import { createMigratedDatabase } from "./migrated-database.ts";

async function open() {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const client = await database.pool.connect();
  onTestFinished(() => client.release());
  return client;
}

test("statements of one trip run in their order and answer each for itself", async () => {
  const client = await open();
  await client.query("create temp table steps (step integer)");
  const counts = await inOneTrip(client, () => [
    client.query("insert into steps values (1)"),
    client.query("select count(*)::integer as n from steps"),
    client.query("insert into steps values (2), (3)"),
    client.query("select count(*)::integer as n from steps"),
  ]);
  expect(counts.map(({ rows }) => rows[0]?.n as unknown)).toEqual([undefined, 1, undefined, 3]);
});

test("the first failure of a trip is the one that is thrown, and the connection goes on", async () => {
  const client = await open();
  await client.query("begin");
  const trip = inOneTrip(client, () => [
    client.query("select 1"),
    client.query("select 1 / 0"),
    client.query("select 2"),
  ]);
  await expect(trip).rejects.toMatchObject({ code: "22012" });
  await client.query("rollback");
  expect((await client.query("select 3 as n")).rows).toEqual([{ n: 3 }]);
});
