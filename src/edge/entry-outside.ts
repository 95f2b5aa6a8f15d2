import { DAY_MS } from "../lib/units.ts";
import { parseLogDay } from "./log-day.ts";

/** What the platform keeps. An entry further away from what was asked for has a broken time. */
const HORIZON_MS = 3 * DAY_MS;
/** A platform that compares times by the second rounds both ends of a window. */
const TOLERANCE_MS = 1_000;

interface Window {
  readonly from: number;
  readonly to: number;
}

/**
 * Whether an event of this time (epoch ms) is one of another window than the one that was asked for. An event at `to` may
 * be inside, because the platform does not say whether its windows hold their end. A time that no window of the platform
 * can hold is a broken time of a single entry, and says nothing about the window.
 */
export function isOutsideWindow(timestamp: number, { from, to }: Window): boolean {
  const isBroken = timestamp < from - HORIZON_MS || timestamp > to + HORIZON_MS;
  return !isBroken && (timestamp < from - TOLERANCE_MS || timestamp > to + TOLERANCE_MS);
}

/**
 * Whether an entry of this time (epoch ms) is one of another UTC day than the one whose list (`MM-dd-yyyy`) shows it. The
 * entry is an event all the same; the list that shows it contradicts itself.
 */
export function isOutsideDay(timestamp: number, date: string): boolean {
  const startsAt = parseLogDay(date);
  return startsAt === null || timestamp < startsAt || timestamp >= startsAt + DAY_MS;
}
