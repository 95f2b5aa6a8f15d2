import { HOUR_MS } from "#lib/units.ts";
import type { AssessedHour } from "./hour-status.ts";

/** Consecutive gap hours. */
export interface Gap {
  /** Epoch ms, half-open. */
  readonly from: number;
  readonly to: number;
  readonly hours: number;
  readonly storedCount: number;
  /** The platform's last count of those hours that were compared with it; null if none was. */
  readonly upstreamCount: number | null;
  /** Each reason once, in the order of time. */
  readonly reasons: readonly string[];
}

/** Joins the gaps among `hours`, which are in order, to as few as possible. */
export function joinGaps(hours: readonly AssessedHour[]): Gap[] {
  const gaps: Gap[] = [];
  for (const { status, startsAt, storedCount, upstreamCount, gapReason } of hours) {
    if (status !== "gap") continue;
    const last = gaps.at(-1);
    const reasons = gapReason === null ? [] : [gapReason];
    const hour = { from: startsAt, to: startsAt + HOUR_MS, hours: 1, storedCount, upstreamCount, reasons };
    if (last?.to === startsAt) gaps[gaps.length - 1] = joined(last, hour);
    else gaps.push(hour);
  }
  return gaps;
}

function joined(one: Gap, next: Gap): Gap {
  const isCounted = one.upstreamCount !== null || next.upstreamCount !== null;
  return {
    from: one.from,
    to: next.to,
    hours: one.hours + next.hours,
    storedCount: one.storedCount + next.storedCount,
    upstreamCount: isCounted ? (one.upstreamCount ?? 0) + (next.upstreamCount ?? 0) : null,
    reasons: [...new Set([...one.reasons, ...next.reasons])],
  };
}
