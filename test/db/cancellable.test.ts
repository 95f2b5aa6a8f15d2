import { sql } from "drizzle-orm";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { runCancellable } from "../../db/cancellable.ts";
import { inSearchTransaction } from "../../db/queries/search-transaction.ts";
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
          "select from pg_stat_activity where query like '%pg_cancel_backend($1)%' and state = 'idle'",
        );
        expect(rowCount).toBe(1);
      });
      await tx.execute(sql`select pg_sleep(600)`);
    }),
  );
  await expect(asking).rejects.toThrow("nobody waits");
  expect((await database.db.execute(sql`select 1 as one`)).rows).toEqual([{ one: 1 }]);
});
