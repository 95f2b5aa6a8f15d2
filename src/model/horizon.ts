import { DAY_MS, HOUR_MS } from "#lib/units.ts";

/** How long the platform keeps events, as long as it has not shown that it keeps those of a zone for less. */
export const KEPT_MS = 72 * HOUR_MS;
/** Requests stay this far inside the retention, so that events do not expire while a request is sent. */
const MARGIN_MS = 2 * 60_000;

/** Number of UTC days before today that the date-paged list still serves. */
const LISTED_DAYS_BEFORE = 2;

/** Returns the earliest moment that can still be requested of a zone whose events the platform keeps for `keptMs`. */
export function horizonAt(now: number, keptMs: number = KEPT_MS): number {
  return now - keptMs + MARGIN_MS;
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

/** How long the platform keeps the events of a zone, as far as its answers have shown; ms and epoch ms. */
export interface KnownHorizon {
  /** Null while the platform shows events of the whole 72 hours. */
  readonly keptMs: number | null;
  /** Since when it keeps events for only `keptMs`. */
  readonly since: number | null;
  /** How long it kept them before that. */
  readonly beforeMs: number | null;
}

export const WHOLE_HORIZON: KnownHorizon = { keptMs: null, since: null, beforeMs: null };

/** A shorter horizon is believed after it has been seen for this long. */
export const BELIEVED_MS = 10 * 60_000;

/** Returns how long the platform keeps events, if it has shown that for at least `forMs`, else 72 hours. */
export function keptFor({ keptMs, since }: KnownHorizon, now: number, forMs = BELIEVED_MS): number {
  return keptMs !== null && since !== null && now - since >= forMs ? keptMs : KEPT_MS;
}
