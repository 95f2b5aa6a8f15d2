import { DAY_MS, HOUR_MS } from "../lib/units.ts";

/** How long the platform keeps events. */
export const KEPT_MS = 72 * HOUR_MS;
/** Requests stay this far inside the retention, so that events do not expire while a request is sent. */
const MARGIN_MS = 2 * 60_000;

/** Number of UTC days before today that the date-paged list still serves. */
const LISTED_DAYS_BEFORE = 2;

/** Returns the earliest moment that can still be requested. */
export function horizonAt(now: number): number {
  return now - KEPT_MS + MARGIN_MS;
}

export function startOfHour(at: number): number {
  return at - (at % HOUR_MS);
}

export function startOfDay(at: number): number {
  return at - (at % DAY_MS);
}

/** Returns the UTC day of a moment, `yyyy-mm-dd`. */
export function toDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** Returns the first UTC day (epoch ms of its start) that the platform's list still serves. */
export function firstListedDay(now: number): number {
  return startOfDay(now) - LISTED_DAYS_BEFORE * DAY_MS;
}

/** Returns when the platform's list stops to serve a UTC day (epoch ms of its start). */
export function listedUntil(dayStart: number): number {
  return dayStart + (LISTED_DAYS_BEFORE + 1) * DAY_MS;
}
