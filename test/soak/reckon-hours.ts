import { HOUR_MS } from "#lib/units.ts";
import type { CoveredHour, Look } from "#model/covered-hour.ts";
import { horizonAt, KEPT_MS } from "#model/horizon.ts";
import { AGREE_LONG_MS, LACKING, SETTLE_MS, settledAt } from "#proof/rules/hour-proof.ts";
import { explainOpen, UNPREVENTABLE } from "#proof/rules/judge-hour.ts";

/** The proof of an hour is due this long after the last moment that it has to wait for. */
const PROOF_MS = 10 * 60_000;

export interface SoakHour extends CoveredHour {
  readonly zoneId: number;
  readonly gapReason: string | null;
  /** Every event of the hour that the platform ever showed is stored. */
  readonly isComplete: boolean;
}

interface HourReckoning {
  readonly sealed: number;
  readonly gaps: number;
  /** Number of gaps by reason. */
  readonly reasons: ReadonlyMap<string, number>;
  /** The gaps that could have been prevented and that lack no event. */
  readonly falseGaps: readonly string[];
  /** Undecided hours that have to wait for longer than the soak, and when the last of them is due. */
  readonly waiting: number;
  readonly waitingUntil: number | null;
  /** The hours that fail the soak, and why. */
  readonly failures: readonly string[];
}

/**
 * Sorts the hours that have ended. An undecided hour fails unless a rule makes it wait: it has just settled, it has
 * no event and waits for its second look, its looks have to agree for an hour on what they do not show, or it is one of
 * the zone's first two hours and the platform has forgotten a part of it. A gap fails if it has no reason.
 */
export function reckonHours(now: number, hours: readonly SoakHour[]): HourReckoning {
  const failures: string[] = [];
  const dueTimes: number[] = [];
  const reasons = new Map<string, number>();
  const falseGaps: string[] = [];
  const counts = { sealed: 0, gap: 0 };
  const firstHours = new Map<number, number>();
  for (const { zoneId, startsAt } of hours)
    firstHours.set(zoneId, Math.min(startsAt, firstHours.get(zoneId) ?? startsAt));
  for (const hour of hours) {
    const name = `zone ${hour.zoneId} ${new Date(hour.startsAt).toISOString()}`;
    if (hour.state !== "open") {
      counts[hour.state]++;
      if (hour.state !== "gap") continue;
      const reason = hour.gapReason ?? "";
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      if (reason === "") failures.push(`${name} is a gap without a reason`);
      if (hour.isComplete && !UNPREVENTABLE.includes(reason)) falseGaps.push(`${name}: ${reason}`);
      continue;
    }
    const isFirst = hour.startsAt <= (firstHours.get(hour.zoneId) ?? 0) + HOUR_MS;
    // Too late for a seal. The hour is a gap once the platform has forgotten it completely.
    const isForgotten = isFirst && hour.startsAt < horizonAt(now);
    const dueAt = isForgotten ? hour.startsAt + HOUR_MS + KEPT_MS + PROOF_MS : dueAtOf(now, hour);
    const why = explainOpen(now, hour, { settleMs: SETTLE_MS }) ?? "nothing is lacking, but no seal was made";
    if (dueAt > now) dueTimes.push(dueAt);
    else failures.push(`${name} is not decided: ${why}`);
  }
  const waitingUntil = dueTimes.length === 0 ? null : Math.max(...dueTimes);
  const { sealed, gap: gaps } = counts;
  return { sealed, gaps, reasons, falseGaps, waiting: dueTimes.length, waitingUntil, failures };
}

/** Returns when an undecided hour is due by its own looks; epoch ms. */
function dueAtOf(now: number, hour: SoakHour): number {
  const settled = settledAt(hour, SETTLE_MS);
  const why = explainOpen(now, hour, { settleMs: SETTLE_MS });
  const { empty, searchShort, listShort, countsShort } = LACKING;
  const isAgreeing = [empty, searchShort, listShort, countsShort].some((text) => text === why);
  const lacking = Object.values(hour.looks).filter(({ count }) => count < hour.storedCount || count === 0);
  return (isAgreeing ? Math.max(settled, agreedAt(lacking)) : settled) + PROOF_MS;
}

function agreedAt(looks: readonly Look[]): number {
  return Math.max(...looks.map(({ since }) => since)) + AGREE_LONG_MS;
}
