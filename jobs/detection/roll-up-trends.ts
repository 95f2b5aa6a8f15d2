import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { Database } from "../../db/client.ts";
import { hasStaleMinutes, listDirtyZones, rollUpBatch } from "../../db/detection/roll-up.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import type { Log } from "../../src/lib/log.ts";
import { type AnyJob, defineJob } from "../../src/queue/define-job.ts";

/** Stale minutes a transaction recounts: a fraction of a second of work, so that replicas take turns quickly. */
const BATCH = 5_000;
const REST_MS = 250;

export interface RollUpTrendsDeps {
  readonly database: Database;
  readonly log: Log;
  /** Called after each batch that counted something, with the oldest and the newest of its minutes. */
  readonly afterRollUp?: (zoneId: number, span: { oldestMs: number; newestMs: number }) => unknown;
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

/**
 * Zones in turn, a batch each, until nothing is stale but what is being written at this moment, or the signal aborts
 * between two batches. A zone that another roll-up has is left to it, instead of waiting with a connection and a
 * worker. No mark is forgotten so: whoever left had its marks committed before, and the other looks for marks once
 * more after it let the zone go. Should that one be killed, the clock rings again.
 */
async function rollUpTrends({ database, ...deps }: RollUpTrendsDeps, signal: AbortSignal): Promise<void> {
  const limit = deps.batch ?? BATCH;
  let minutes = 0;
  let zoneIds = await listDirtyZones(database.db);
  while (zoneIds.length > 0 && !signal.aborted) {
    const unfinished: number[] = [];
    let cleared = 0;
    for (const zoneId of zoneIds) {
      if (signal.aborted) break;
      const batch = await inTransaction(database, ({ tx }) => rollUpBatch(tx, { zoneId, limit }));
      minutes += batch.counted;
      cleared += batch.cleared;
      if (batch.span !== null) await deps.afterRollUp?.(zoneId, batch.span);
      if (!batch.isTaken && (await hasStaleMinutes(database.db, zoneId))) unfinished.push(zoneId);
    }
    zoneIds = unfinished;
    // Only minutes that writers mark faster than they are counted: once in a while is enough for these.
    if (zoneIds.length > 0 && cleared === 0) await pause(REST_MS, signal);
  }
  if (minutes > 0) deps.log.debug({ minutes }, "trends rolled up");
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
