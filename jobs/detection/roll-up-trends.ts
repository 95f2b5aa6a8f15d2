/** Rolls events up into buckets, and says who has to judge them. */

import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { Database } from "#db/client.ts";
import { hasStaleMinutes, listDirtyZones, rollUpBatch } from "#db/detection/roll-up.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { isRising } from "#db/proof/platform-health.ts";
import type { Clock } from "#lib/clock.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";

/** Stale minutes recounted per transaction. It takes a fraction of a second, so that replicas take turns quickly. */
const BATCH = 5_000;
const REST_MS = 250;

interface RollUpTrendsDeps extends Pick<JobContext, "database" | "log"> {
  /** Called after each batch that counted something, with the oldest and the newest of its minutes. */
  readonly afterRollUp?: (zoneId: number, span: { oldestMs: number; newestMs: number }) => unknown;
  /** Stale minutes per transaction. */
  readonly batch?: number;
}

/**
 * Recounts every minute that ingest marked as stale, and the hours and days that contain it. Buckets are a function
 * of the events. A batch that is killed has changed nothing, and a batch that runs twice or concurrently ends with
 * the same counts.
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
 * Recounts the zones in turn, one batch each, until the only stale minutes are those being written at this moment, or
 * until the signal aborts between two batches. A zone that another roll-up has locked is skipped, so that this one
 * does not wait with a connection and a worker. No mark is lost by that: the marks were committed before this roll-up
 * skipped the zone, and the other one checks for marks once more after it releases the zone. If the other one is
 * killed, the next tick enqueues the job again.
 */
async function rollUpTrends({ database, ...deps }: RollUpTrendsDeps, signal: AbortSignal) {
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
    // Only minutes that writers mark faster than they are counted are left. They are recounted after a pause.
    if (zoneIds.length > 0 && cleared === 0) await pause(REST_MS, signal);
  }
  if (minutes === 0) return "no minute has new events";
  deps.log.debug({ minutes }, "trends rolled up");
  return undefined;
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

/** How soon the detectors are enqueued. */
interface DetectorNudges {
  readonly soon: () => void;
  /** Enqueues the detectors for the running minute. */
  readonly judgeNow: () => void;
  readonly later: () => void;
}

/**
 * Returns a function that enqueues the detectors after a roll-up that they can use. For each zone they are enqueued soon
 * at the first roll-up of a minute, and at the first roll-up with events of a new minute, because the search has then
 * passed the minute before. In a zone in which something rises they follow every roll-up. Counts of the running minute
 * alone have it judged at once. The detectors are enqueued later when a closed minute was recounted: where some events of
 * every page are late, every roll-up recounts one, and a tick judges all zones.
 */
export function createAfterRollUp(
  { clock, database }: { readonly clock: Clock; readonly database: Database },
  { soon, judgeNow, later }: DetectorNudges,
) {
  const seen = new Map<number, { readonly atMinute: number; readonly newestMs: number }>();
  return async (
    zoneId: number,
    { oldestMs, newestMs }: { oldestMs: number; newestMs: number },
  ): Promise<void> => {
    const nowMs = clock();
    const minute = Math.floor(nowMs / MINUTE_MS);
    const last = seen.get(zoneId);
    const isNew = last === undefined || last.atMinute !== minute || newestMs > last.newestMs;
    if (isNew) seen.set(zoneId, { atMinute: minute, newestMs: Math.max(newestMs, last?.newestMs ?? 0) });
    if (isNew || (await isRising(database.db, zoneId, nowMs))) soon();
    else if (oldestMs >= minute * MINUTE_MS) judgeNow();
    else later();
  };
}
