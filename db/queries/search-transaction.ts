import { sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { readSqlState } from "../sql-state.ts";

const NO_TABLE = "42P01";
const PARALLEL_WORKERS = 4;
type Asked = Pick<Database, "db" | "parallelWorkers">;

/**
 * Runs the statements of one search on one view of the data, so that rows, totals and counts made in advance agree
 * while ingest goes on. Scans of many events are worth several processes and memory; compiling them never was.
 */
export async function inSearchTransaction<T>(
  database: Asked,
  run: (tx: Queryable) => Promise<T>,
): Promise<T> {
  try {
    return await runOnce(database, run);
  } catch (thrown) {
    // Retention dropped a day that this search had seen a moment before: now it sees none.
    if (readSqlState(thrown) !== NO_TABLE) throw thrown;
    return runOnce(database, run);
  }
}

function runOnce<T>({ db, parallelWorkers }: Asked, run: (tx: Queryable) => Promise<T>): Promise<T> {
  const workers = String(parallelWorkers ?? PARALLEL_WORKERS);
  return db.transaction(
    async (tx) => {
      await tx.execute(sql`
        select set_config('jit', 'off', true), set_config('work_mem', '64MB', true),
          set_config('max_parallel_workers_per_gather', ${workers}, true),
          set_config('enable_partitionwise_aggregate', 'on', true)`);
      return run(tx);
    },
    { isolationLevel: "repeatable read", accessMode: "read only" },
  );
}
