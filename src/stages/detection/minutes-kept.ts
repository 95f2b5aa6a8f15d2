import { DAY_MS } from "#lib/units.ts";

/** The most days of stored counts that a replay of the detector covers. */
export const REPLAYED_DAYS = 60;
/** A replay reads the history of its first minute, too, which is a week and two hours. */
const HISTORY_DAYS = 8;

/** Returns the moment before which counts by the minute of archive days are deleted. Counts by the hour and day stay. */
export function minutesFrom(now: number): number {
  return now - (REPLAYED_DAYS + HISTORY_DAYS + 1) * DAY_MS;
}
