export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export const MINUTES_PER_DAY = 1_440;

/** The last millisecond of the year 9999: a later time fits neither ISO 8601 with four digits nor every database. */
export const LAST_MS = 253_402_300_799_999;

/** Returns the nearest time from 1970 to 9999; epoch ms. */
export function clampTime(atMs: number): number {
  return Math.min(Math.max(atMs, 0), LAST_MS);
}
