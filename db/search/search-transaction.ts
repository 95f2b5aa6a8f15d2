import { sql } from "drizzle-orm";
import type pg from "pg";
import { readSqlState } from "#lib/sql-state.ts";
import { type Database, onConnection, type Queryable } from "../client.ts";
import { transact } from "../postgres/transaction.ts";
import { wafEvents } from "../schema/waf-events.ts";

const NO_TABLE = "42P01";
const PARALLEL_WORKERS = 4;
/** Megabytes of one sort or hash table in all processes of a search together, and in each of them. */
const TOGETHER_MB = 160;
const MOST_MB = 64;
type Asked = Pick<Database, "client" | "pool" | "parallelWorkers">;

/**
 * Runs the statements of one search on one view of the data, so that rows, totals and the manifest agree
 * while ingest goes on. Scans of many events are worth several processes and memory; compiling them never was.
 */
export function inSearchTransaction<T>(
  database: Asked,
  run: (tx: Queryable, client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const workers = database.parallelWorkers ?? PARALLEL_WORKERS;
  const memory = Math.min(MOST_MB, Math.floor(TOGETHER_MB / (workers + 1)));
  return againWithoutTable(() =>
    onConnection(database, (client) =>
      transact(
        client,
        async (tx) => {
          // Before the snapshot. Otherwise a day that moves into the archive between the snapshot and the scan would be
          // in neither: the snapshot's manifest lacks the file, and a scan never sees a dropped partition.
          await tx.execute(sql`lock table only ${wafEvents} in access share mode`);
          await tx.execute(sql`
            select set_config('jit', 'off', true), set_config('work_mem', ${`${memory}MB`}, true),
              set_config('hash_mem_multiplier', '1', true),
              set_config('max_parallel_workers_per_gather', ${String(workers)}, true),
              set_config('enable_partitionwise_aggregate', 'on', true)`);
          return run(tx, client);
        },
        { config: { isolationLevel: "repeatable read", accessMode: "read only" } },
      ),
    ),
  );
}

/** Once more where retention dropped a day that the search had seen a moment before: then it sees none. */
async function againWithoutTable<T>(search: () => Promise<T>): Promise<T> {
  try {
    return await search();
  } catch (thrown) {
    if (readSqlState(thrown) !== NO_TABLE) throw thrown;
    return search();
  }
}
