import { z } from "zod";

/** The last millisecond a JavaScript Date can hold. */
const LAST_DATE_MS = 8_640_000_000_000_000;

/** Unix time in milliseconds, UTC; only values that a Date can represent. */
export const EpochMs = z.int().min(0).max(LAST_DATE_MS);

/** A smaller number is a time in seconds: as milliseconds it would be before March 1973. */
const SECONDS_BELOW = 100_000_000_000;

/**
 * Returns the time of an entry in whole epoch ms, or null for a value that is none. The platform sends milliseconds. A
 * time in seconds is read as well, and a fraction of a millisecond is cut off.
 */
export function readEventTime(value: unknown): number | null {
  if (typeof value !== "number" || !(value >= 0 && value <= LAST_DATE_MS)) return null;
  // To the microsecond first, because a double holds 0.122 s as a little more or less.
  return Math.floor(value < SECONDS_BELOW ? Math.round(value * 1_000_000) / 1_000 : value);
}

/** The time of an entry, for `readEventTime`. */
export const EventTime = z
  .number()
  .min(0)
  .max(LAST_DATE_MS)
  .transform((time) => readEventTime(time) ?? 0);
