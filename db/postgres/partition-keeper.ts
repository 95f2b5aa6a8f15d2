import { readSqlState } from "#lib/sql-state.ts";
import type { Database } from "../client.ts";
import { ensurePartitions } from "./partitions.ts";

const NO_PARTITION = "23514";

/**
 * Returns a keeper that runs writers with the partitions of their days in place. It remembers the days that it has
 * checked, so that a page costs no catalogue query. If retention has dropped a day since, the keeper creates the day
 * again and runs the writer once more.
 */
export function createPartitionKeeper(database: Database) {
  const kept = new Set<string>();

  async function ensure(days: readonly string[]): Promise<void> {
    const missing = days.filter((day) => !kept.has(day));
    if (missing.length === 0) return;
    await ensurePartitions(database, missing);
    for (const day of missing) kept.add(day);
  }

  return {
    /** Runs `write` with partitions for `days`, which are UTC days (`yyyy-mm-dd`). */
    async withDays<T>(days: readonly string[], write: () => Promise<T>): Promise<T> {
      await ensure(days);
      try {
        return await write();
      } catch (thrown) {
        if (readSqlState(thrown) !== NO_PARTITION) throw thrown;
        for (const day of days) kept.delete(day);
        await ensure(days);
        return write();
      }
    },
  };
}

export type PartitionKeeper = ReturnType<typeof createPartitionKeeper>;
