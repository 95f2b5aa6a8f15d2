import { readSqlState } from "../../src/lib/sql-state.ts";
import type { Database } from "../client.ts";
import { ensurePartitions } from "./partitions.ts";

const NO_PARTITION = "23514";

/**
 * Runs writers with their days' partitions in place. Remembers which days it has seen to, so that a page costs no
 * catalogue query; where a day has gone since (retention), it is made again and the writer runs once more.
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
    /** `days` are UTC, `yyyy-mm-dd`. */
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
