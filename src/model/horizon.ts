/** Spans of time: how far back the platform shows events, and which spans a run may have. */

import { showIso } from "#lib/format.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { BucketWidth, WidthName } from "./kinds.ts";

/** A half-open span: includes `from`, excludes `to`. Epoch ms. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Time that the platform keeps events, unless a zone's answers have shown a shorter time. */
export const KEPT_MS = 72 * HOUR_MS;
/** Requests stay inside the retention by this margin, so that events do not expire while a request is sent. */
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

/** Returns the time at which the platform's list stops serving a UTC day (epoch ms of its start). */
export function listedUntil(dayStart: number): number {
  return dayStart + (LISTED_DAYS_BEFORE + 1) * DAY_MS;
}

/** The time that the platform keeps the events of a zone, as far as its answers have shown it; ms and epoch ms. */
export interface KnownHorizon {
  /** Null while the platform shows events of the whole 72 hours. */
  readonly keptMs: number | null;
  /** Time from which the platform has kept events for only `keptMs`. */
  readonly since: number | null;
  /** Time that the platform kept events before that. */
  readonly beforeMs: number | null;
}

export const WHOLE_HORIZON: KnownHorizon = { keptMs: null, since: null, beforeMs: null };

/** A shorter horizon is trusted after it has been seen for this long. */
export const BELIEVED_MS = 10 * 60_000;

/** Returns the time that the platform keeps events if it has shown this time for at least `forMs`, else 72 hours. */
export function keptFor(
  { keptMs, since }: Pick<KnownHorizon, "keptMs" | "since">,
  now: number,
  forMs = BELIEVED_MS,
): number {
  return keptMs !== null && since !== null && now - since >= forMs ? keptMs : KEPT_MS;
}

/** The longest span of a run that is started over the API. */
export const MAX_RUN_DAYS = 31;

/** Returns the mistakes of a backfill's span: the name of the end, and the rule that it breaks. */
export function findReachFaults(
  { from, to, route }: Span & { readonly route: string },
  now: number,
): { readonly field: "from" | "to"; readonly rule: string }[] {
  const listed = firstListedDay(now);
  // The moment that is named must still be valid when a person has typed it.
  const kept = Math.ceil(horizonAt(now) / MINUTE_MS) * MINUTE_MS;
  return [
    ...(to > now ? [{ field: "to" as const, rule: `now (${showIso(now)}) or earlier` }] : []),
    ...(from < now - KEPT_MS
      ? [
          {
            field: "from" as const,
            rule: `${showIso(kept)} or later: the platform keeps events for 72 hours`,
          },
        ]
      : route === "list" && from < listed
        ? [
            {
              field: "from" as const,
              rule: `${showIso(listed)} or later: the list serves today and the two UTC days before`,
            },
          ]
        : []),
  ];
}

/** Returns a mistake if the span is empty, or too long for a run over the API. */
export function findLengthFault({
  from,
  to,
}: Span): { readonly field: "from" | "to"; readonly rule: string } | null {
  if (to <= from) return { field: "to", rule: `after from, ${showIso(from)}` };
  const days = Math.ceil((to - from) / DAY_MS);
  return days > MAX_RUN_DAYS
    ? {
        field: "from",
        rule: `at most ${MAX_RUN_DAYS} days before to, but is ${days} days before it`,
      }
    : null;
}

export const WIDTH_SECONDS: Readonly<Record<WidthName, BucketWidth>> = {
  minute: 60,
  hour: 3_600,
  day: 86_400,
};
