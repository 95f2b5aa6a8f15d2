import type { RisingZone } from "#model/zones.ts";

/** The newest minutes of a rising zone are searched again when they are older than this. */
export const RISING_FRESH_MS = 5_000;

const PAGE_EVENTS = 500;

/**
 * Returns the zones to poll now, of those in which something rises, in their order. A zone that was searched just now is
 * left out. A zone with more events than the requests that are left can read is polled by its tick only, so that it
 * takes nothing from the other zones and the proof.
 */
export function pickRising(zones: readonly RisingZone[], nowMs: number, mostRequests: number): number[] {
  let left = mostRequests;
  return zones.flatMap(({ zoneId, searchedThroughMs, events }) => {
    const requests = 1 + Math.floor(events / PAGE_EVENTS);
    if (requests > left || nowMs - (searchedThroughMs ?? 0) < RISING_FRESH_MS) return [];
    left -= requests;
    return [zoneId];
  });
}
