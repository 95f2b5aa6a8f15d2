import { DAY_MS, HOUR_MS } from "../lib/units.ts";

/** How long the platform keeps events. */
export const KEPT_MS = 72 * HOUR_MS;
/** What is asked for stays this far inside, so that a request on its way does not ask for what has just expired. */
const MARGIN_MS = 2 * 60_000;

/** Beside today, the UTC days that the date-paged list still serves. */
const LISTED_DAYS_BEFORE = 2;

/** The earliest moment that can still be asked for. */
export function horizonAt(now: number): number {
  return now - KEPT_MS + MARGIN_MS;
}

export function startOfHour(at: number): number {
  return at - (at % HOUR_MS);
}

export function startOfDay(at: number): number {
  return at - (at % DAY_MS);
}

/** The UTC day of a moment, `yyyy-mm-dd`. */
export function toDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** The first UTC day (epoch ms of its start) of which the platform's list can still be asked for. */
export function firstListedDay(now: number): number {
  return startOfDay(now) - LISTED_DAYS_BEFORE * DAY_MS;
}
