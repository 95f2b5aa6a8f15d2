import { DAY_MS } from "#lib/units.ts";
import { parseLogDay } from "./log-day.ts";

/** The platform's retention. An entry further away from the requested time has a wrong time. */
const HORIZON_MS = 3 * DAY_MS;
/** A platform that compares times by the second rounds both ends of a window. */
const TOLERANCE_MS = 1_000;

interface Window {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns whether an event of this time (epoch ms) belongs to another window than the requested one. An event at `to`
 * may be inside, because the platform does not document whether its windows include their end. A time that no window
 * of the platform can hold is a wrong time of a single entry and is no sign of a wrong window.
 */
export function isOutsideWindow(timestamp: number, { from, to }: Window): boolean {
  const isBroken = timestamp < from - HORIZON_MS || timestamp > to + HORIZON_MS;
  return !isBroken && (timestamp < from - TOLERANCE_MS || timestamp > to + TOLERANCE_MS);
}

/**
 * Returns whether an entry of this time (epoch ms) belongs to another UTC day than the list (`MM-dd-yyyy`) that shows
 * it. The entry is still an event; the list contradicts itself.
 */
export function isOutsideDay(timestamp: number, date: string): boolean {
  const startsAt = parseLogDay(date);
  return startsAt === null || timestamp < startsAt || timestamp >= startsAt + DAY_MS;
}
