import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { sql } from "drizzle-orm";
import { from as copyFrom } from "pg-copy-streams";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { inSearchTransaction } from "#db/archive/search-condition.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";

let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
  await database.db.execute(sql`create table balances (id int primary key, amount int not null)`);
});

afterAll(() => database.drop());

beforeEach(async () => {
  await database.db.execute(sql`truncate balances`);
  await database.db.execute(sql`insert into balances values (1, 0), (2, 0)`);
});

async function amounts(): Promise<unknown[]> {
  const read = await database.db.execute<{ amount: number }>(sql`select amount from balances order by id`);
  return read.rows.map(({ amount }) => amount);
}

test("two transactions that deadlock both commit in the end", async () => {
  let attempts = 0;
  let arrived = 0;
  let letBothGo: () => void = () => undefined;
  const bothArrived = new Promise<void>((resolve) => {
    letBothGo = resolve;
  });
  const raise = (first: number, second: number) =>
    inTransaction(database, async ({ tx }) => {
      attempts += 1;
      await tx.execute(sql`update balances set amount = amount + 1 where id = ${first}`);
      arrived += 1;
      if (arrived === 2) letBothGo();
      await bothArrived;
      await tx.execute(sql`update balances set amount = amount + 1 where id = ${second}`);
    });

  await Promise.all([raise(1, 2), raise(2, 1)]);

  expect(attempts).toBe(3);
  expect(await amounts()).toEqual([2, 2]);
});

test("a transaction that can never succeed is given up after five attempts", async () => {
  let attempts = 0;
  const doomed = inTransaction(database, async ({ tx }) => {
    attempts += 1;
    await tx.execute(sql`do $$ begin raise exception 'no' using errcode = '40001'; end $$`);
  });

  await expect(doomed).rejects.toMatchObject({ cause: { code: "40001" } });
  expect(attempts).toBe(5);
});

test("an error that a second run would not cure is not retried, and nothing is stored", async () => {
  let attempts = 0;
  const failing = inTransaction(database, async ({ tx }) => {
    attempts += 1;
    await tx.execute(sql`update balances set amount = 9`);
    throw new Error("from the caller");
  });

  await expect(failing).rejects.toThrow("from the caller");
  expect(attempts).toBe(1);
  expect(await amounts()).toEqual([0, 0]);
});

test("rows copied through the connection commit and roll back with the query builder's", async () => {
  const copy = (fail: boolean) =>
    inTransaction(database, async ({ tx, client }) => {
      await tx.execute(sql`delete from balances`);
      await pipeline(Readable.from(["5\t50\n"]), client.query(copyFrom("copy balances from stdin")));
      if (fail) throw new Error("after the copy");
    });

  await expect(copy(true)).rejects.toThrow("after the copy");
  expect(await amounts()).toEqual([0, 0]);
  await copy(false);
  expect(await amounts()).toEqual([50]);
});

test.each([
  ["a transaction", (run: () => Promise<never>) => inTransaction(database, run)],
  ["a search", (run: () => Promise<never>) => inSearchTransaction(database, run)],
])(
  "%s that fails and whose connection is lost before the rollback fails with the first error",
  async (_name, start) => {
    const failing = start(async () => {
      await database.pool.query(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'",
      );
      throw new Error("first");
    });
    await expect(failing).rejects.toThrow("first");
  },
);
