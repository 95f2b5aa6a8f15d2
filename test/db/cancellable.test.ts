import { sql } from "drizzle-orm";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { inSearchTransaction } from "#db/archive/search-condition.ts";
import { createDatabase } from "#db/client.ts";
import { runCancellable } from "#db/postgres/transaction.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";

let database: MigratedDatabase;
beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());

test("a question that is given up between two statements does not run the next one to its end", async () => {
  const gone = new AbortController();
  const asking = runCancellable(database, gone.signal, (bound) =>
    inSearchTransaction(bound, async (tx) => {
      gone.abort(new Error("nobody waits"));
      await vi.waitFor(async () => {
        const { rowCount } = await database.pool.query(
          `select from pg_stat_activity where query like '%pg_cancel_backend($1)%' and state = 'idle'
             and datname = current_database()`,
        );
        expect(rowCount).toBe(1);
      });
      await tx.execute(sql`select pg_sleep(600)`);
    }),
  );
  await expect(asking).rejects.toThrow("nobody waits");
  expect((await database.db.execute(sql`select 1 as one`)).rows).toEqual([{ one: 1 }]);
});

test("the statements of a question together take no longer than one statement may", async () => {
  const options = { max: 1, applicationName: "test", onError: () => undefined, statementTimeoutMs: 1_000 };
  const limited = createDatabase({ url: database.url, ...options });
  let ended = 0;
  const asking = runCancellable(limited, new AbortController().signal, (bound) =>
    inSearchTransaction(bound, async (tx) => {
      for (; ended < 100; ended++) await tx.execute(sql`select pg_sleep(0.3)`);
    }),
  );
  await expect(asking).rejects.toMatchObject({ cause: { code: "57014" } });
  expect(ended).toBeLessThan(4);
  expect((await limited.db.execute(sql`select 1 as one`)).rows).toEqual([{ one: 1 }]);
  await limited.close();
});

test("sorts and hash tables of a search have less memory each, the more processes it has", async () => {
  const read = (parallelWorkers: number) =>
    inSearchTransaction({ ...database, parallelWorkers }, async (tx) => {
      const { rows } = await tx.execute<{ memory: string }>(
        sql`select current_setting('work_mem') || ' x ' || current_setting('hash_mem_multiplier') as memory`,
      );
      return rows[0]?.memory;
    });
  expect([await read(0), await read(4)]).toEqual(["64MB x 1", "32MB x 1"]);
});
