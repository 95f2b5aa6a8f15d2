import type { Database } from "#db/client.ts";
import { isRising } from "#db/coverage/platform-health.ts";
import type { Clock } from "#lib/clock.ts";
import { MINUTE_MS } from "#lib/units.ts";

/** How soon the detectors are enqueued. */
export interface DetectorNudges {
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
