import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createDatabase } from "../../db/client.ts";
import { readSqlState } from "../../db/sql-state.ts";
import { inTransaction } from "../../db/transaction.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";

let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
});

afterEach(() => database.drop());

test("every session is bounded, named and on UTC", async () => {
  const settings = await database.db.execute(sql`
    select name, setting from pg_settings where name in ('TimeZone', 'application_name',
      'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout') order by name collate "C"`);
  expect(settings.rows).toEqual([
    { name: "TimeZone", setting: "UTC" },
    { name: "application_name", setting: "longwatch test" },
    { name: "idle_in_transaction_session_timeout", setting: "60000" },
    { name: "lock_timeout", setting: "10000" },
    { name: "statement_timeout", setting: "60000" },
  ]);
});

test("an idle connection that dies is reported once, and the next query works", async () => {
  const idle = await database.pool.connect();
  const killer = await database.pool.connect();
  const pid = await idle.query<{ pid: number }>("select pg_backend_pid() as pid");
  idle.release();
  await killer.query("select pg_terminate_backend($1)", [pid.rows[0]?.pid]);
  killer.release();

  await expect.poll(() => database.pool.totalCount).toBe(1);
  expect(database.errors).toHaveLength(1);
  expect((await database.db.execute(sql`select 1 as one`)).rows).toEqual([{ one: 1 }]);
});

test("a connection that dies while the pool closes is not reported: its server may stop beside it", async () => {
  const errors: Error[] = [];
  const onError = (error: Error) => void errors.push(error);
  const closing = createDatabase({
    url: database.url,
    max: 1,
    applicationName: "longwatch test",
    onError,
  });
  const client = await closing.pool.connect();
  const pid = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const ended = closing.close();
  const died = new Promise((resolve) => client.once("end", resolve));
  await database.pool.query("select pg_terminate_backend($1)", [pid.rows[0]?.pid]);
  await died;
  client.release();
  await ended;
  expect(errors).toEqual([]);
});

test("a transaction whose connection dies rejects with the cause, is reported, and leaves no broken connection", async () => {
  const thrown = await inTransaction(database, async ({ tx }) => {
    await tx.execute(sql`select pg_terminate_backend(pg_backend_pid())`);
  }).catch((error: unknown) => error);

  expect(readSqlState(thrown)).toBe("57P01");
  await expect.poll(() => database.errors.length).toBeGreaterThan(0);
  expect(database.pool.totalCount).toBe(0);
  expect((await database.db.execute(sql`select 1 as one`)).rows).toEqual([{ one: 1 }]);
});

test("a connection that dies between two statements of a transaction ends neither the process nor the pool", async () => {
  const thrown = await inTransaction(database, async ({ tx, client }) => {
    const pid = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    await database.db.execute(sql`select pg_terminate_backend(${pid.rows[0]?.pid})`);
    await vi.waitUntil(() => database.errors.length > 0);
    await tx.execute(sql`select 1`);
  }).catch((error: unknown) => error);

  expect(thrown).toBeInstanceOf(Error);
  expect((await database.db.execute(sql`select 1 as one`)).rows).toEqual([{ one: 1 }]);
});
