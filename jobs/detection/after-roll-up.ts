import type { Clock } from "../../src/lib/clock.ts";
import { MINUTE_MS } from "../../src/lib/units.ts";

/**
 * Nudges the detector after a roll-up that it can make use of. The detector judges closed minutes only, so counts of the
 * minute that is still open wait for its end; where pages come every few seconds, most roll-ups are of this kind. Per zone
 * it is nudged when a closed minute was recounted, at the first roll-up of a minute, and at the first one that has events
 * of a new minute, because the search has then come past the minute before.
 */
export function createAfterRollUp(clock: Clock, enqueue: () => void) {
  const seen = new Map<number, { readonly rungAtMinute: number; readonly newestMs: number }>();
  return (zoneId: number, { oldestMs, newestMs }: { oldestMs: number; newestMs: number }): void => {
    const minute = Math.floor(clock() / MINUTE_MS);
    const last = seen.get(zoneId);
    const isNew = last === undefined || last.rungAtMinute !== minute || newestMs > last.newestMs;
    if (!isNew && oldestMs >= minute * MINUTE_MS) return;
    seen.set(zoneId, { rungAtMinute: minute, newestMs: Math.max(newestMs, last?.newestMs ?? 0) });
    enqueue();
  };
}
