import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createDatabase } from "#db/client.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { readSqlState } from "#lib/errors.ts";
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

/** Two connections, and what stops their sessions in the server as a machine does that hangs. */
async function openClosable() {
  const errors: Error[] = [];
  const onError = (error: Error) => void errors.push(error);
  const closable = createDatabase({ url: database.url, max: 2, applicationName: "closed soon", onError });
  const clients = [await closable.pool.connect(), await closable.pool.connect()];
  const found = await Promise.all(
    clients.map((client) => client.query<{ pid: number }>("select pg_backend_pid() as pid")),
  );
  for (const client of clients) client.release();
  const signal = (name: "SIGSTOP" | "SIGCONT") => {
    for (const { rows } of found) process.kill(rows[0]?.pid ?? 0, name);
  };
  const countSessions = async () =>
    (await database.pool.query("select 1 from pg_stat_activity where application_name = 'closed soon'"))
      .rowCount;
  return { closable, errors, signal, countSessions };
}

test("after a close no session is left that a server which is stopped next would have to end by force", async () => {
  const { closable, errors, signal, countSessions } = await openClosable();
  let isClosed = false;
  signal("SIGSTOP");
  const closing = closable.close().then(() => {
    isClosed = true;
  });
  await expect.poll(() => closable.pool.ended).toBe(true);
  expect([await countSessions(), isClosed]).toEqual([2, false]);

  signal("SIGCONT");
  await closing;
  expect(await countSessions()).toBe(0);
  expect(errors).toEqual([]);
});

test("a close does not wait for ever for a server that has gone silent", async () => {
  const { closable, signal } = await openClosable();
  signal("SIGSTOP");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const closing = closable.close();
  await vi.advanceTimersByTimeAsync(2_000);

  await closing;
  signal("SIGCONT");
});
