import type { Clock } from "#lib/clock.ts";
import { MINUTE_MS } from "#lib/units.ts";

/** How soon the detector is enqueued. */
export interface DetectorNudges {
  readonly soon: () => void;
  readonly later: () => void;
}

/**
 * Returns a function that enqueues the detector after a roll-up that the detector can use. The detector judges closed
 * minutes only, so counts of the open minute wait for its end. If pages come every few seconds, most roll-ups are of
 * this kind. For each zone the detector is enqueued soon at the first roll-up of a minute, and at the first roll-up with
 * events of a new minute, because the search has then passed the minute before. It is enqueued later when a closed minute
 * was recounted: where some events of every page are late, every roll-up recounts one, and a tick judges all zones.
 */
export function createAfterRollUp(clock: Clock, { soon, later }: DetectorNudges) {
  const seen = new Map<number, { readonly atMinute: number; readonly newestMs: number }>();
  return (zoneId: number, { oldestMs, newestMs }: { oldestMs: number; newestMs: number }): void => {
    const minute = Math.floor(clock() / MINUTE_MS);
    const last = seen.get(zoneId);
    const isNew = last === undefined || last.atMinute !== minute || newestMs > last.newestMs;
    if (!isNew && oldestMs >= minute * MINUTE_MS) return;
    seen.set(zoneId, { atMinute: minute, newestMs: Math.max(newestMs, last?.newestMs ?? 0) });
    if (isNew) soon();
    else later();
  };
}
