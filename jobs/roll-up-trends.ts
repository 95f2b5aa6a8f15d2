import { z } from "zod";
import type { Database } from "../db/client.ts";
import { listDirtyZones, rollUpBatch } from "../db/queries/roll-up.ts";
import { inTransaction } from "../db/transaction.ts";
import type { Log } from "../src/log.ts";
import { type AnyJob, defineJob } from "../src/queue/define-job.ts";

/** Stale minutes a transaction recounts: a fraction of a second of work, so that replicas take turns quickly. */
const BATCH = 5_000;

export interface RollUpTrendsDeps {
  readonly database: Database;
  readonly log: Log;
  /** Told after each batch that counted something. */
  readonly afterRollUp?: () => unknown;
  /** Stale minutes per transaction. */
  readonly batch?: number;
}

/**
 * Recounts every minute that ingest marked as stale, and the hours and days above it. Buckets are a function of the
 * events: a batch that is killed has changed nothing, one that runs twice or beside another ends at the same counts.
 */
export function createRollUpTrendsJob(deps: RollUpTrendsDeps): AnyJob {
  return defineJob({
    name: "roll-up-trends",
    queue: "derive",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 300_000,
    run: (_payload, signal) => rollUpTrends(deps, signal),
  });
}

/** Until nothing is stale but what is being written at this moment, or the signal aborts between two batches. */
async function rollUpTrends(deps: RollUpTrendsDeps, signal: AbortSignal): Promise<void> {
  const { database, log, afterRollUp } = deps;
  let minutes = 0;
  for (const zoneId of await listDirtyZones(database.db)) {
    while (!signal.aborted) {
      const limit = deps.batch ?? BATCH;
      const batch = await inTransaction(database, ({ tx }) => rollUpBatch(tx, { zoneId, limit }));
      minutes += batch.counted;
      if (batch.counted > 0) await afterRollUp?.();
      // Nothing cleared: writers hold the rest, and ring again when they commit.
      if (batch.cleared === 0) break;
    }
  }
  if (minutes > 0) log.info({ minutes }, "trends rolled up");
}
