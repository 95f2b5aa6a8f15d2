import type { CoveredHour } from "./covered-hour.ts";
import { firstListedDay, HOUR_MS, horizonAt, startOfDay } from "./horizon.ts";
import { isListProven } from "./is-list-proven.ts";
import { isMatched } from "./plan-comparison.ts";

/** Why an hour is a gap that nobody could have prevented; it is no reason to wake anyone. */
export const FIRST_WATCHED = "The platform had begun to forget this hour when the zone was first watched.";

export interface JudgedHour extends CoveredHour {
  /** Start of the latest full list pass over its day that reached the end. */
  readonly fullPassStartedAt: number | null;
  /** Nothing is known of the zone before it. */
  readonly isFirst: boolean;
}

/** As it is stored, for people: times as ISO text. */
type Evidence = Readonly<Record<string, unknown>>;

export type Verdict =
  | { readonly state: "open" }
  | { readonly state: "sealed"; readonly evidence: Evidence }
  | { readonly state: "gap"; readonly reason: string; readonly evidence: Evidence };

/**
 * What can be said of an undecided hour. Sealed: it has settled; a complete list pass, a complete search and the
 * platform's own counts were all read after that, the list and the counts after its last new event, and the counts are
 * ours in every cell. A day that the list no longer serves is proven by search alone, by one that found nothing new;
 * the evidence says so. A gap: the platform has begun to forget it.
 */
export function judgeHour(now: number, hour: JudgedHour, { settleMs }: { settleMs: number }): Verdict {
  const { startsAt } = hour;
  const hasSettled = startsAt + HOUR_MS + settleMs <= now;
  if (hasSettled && isProven(now, hour, settleMs))
    return { state: "sealed", evidence: prove(hour, settleMs) };
  if (startsAt >= horizonAt(now)) return { state: "open" };
  return { state: "gap", reason: explainGap(hour, settleMs), evidence: describeGap(hour) };
}

function isProven(now: number, hour: JudgedHour, settleMs: number): boolean {
  const { startsAt, closingSearchAt, lastNewAt, fullPassStartedAt } = hour;
  if (closingSearchAt === null || closingSearchAt < startsAt + HOUR_MS + settleMs) return false;
  if (!isMatched(hour, settleMs)) return false;
  if (isListProven(hour, fullPassStartedAt, settleMs)) return true;
  const isListed = startOfDay(startsAt) >= firstListedDay(now);
  return !isListed && (lastNewAt === null || lastNewAt < closingSearchAt);
}

function prove(hour: JudgedHour, settleMs: number): Evidence {
  const { closingSearchAt, reconciledAt, lastNewAt, fullPassStartedAt } = hour;
  const { upstreamCount, storedCount, surplusCells } = hour;
  return {
    settleMs,
    list: isListProven(hour, fullPassStartedAt, settleMs)
      ? { passStartedAt: toIso(fullPassStartedAt) }
      : null,
    search: { startedAt: toIso(closingSearchAt) },
    counts: { readAt: toIso(reconciledAt), upstream: upstreamCount, stored: storedCount, surplusCells },
    lastNewAt: toIso(lastNewAt),
  };
}

function describeGap(hour: JudgedHour): Evidence {
  const { startsAt, searchedThrough, closingSearchAt, reconciledAt, lastNewAt, fullPassStartedAt } = hour;
  const { upstreamCount, storedCount, missingCells, surplusCells } = hour;
  return {
    from: toIso(startsAt),
    to: toIso(startsAt + HOUR_MS),
    list: { passStartedAt: toIso(fullPassStartedAt) },
    search: { through: toIso(searchedThrough), startedAt: toIso(closingSearchAt) },
    counts: {
      readAt: toIso(reconciledAt),
      upstream: upstreamCount,
      stored: storedCount,
      missingCells,
      surplusCells,
    },
    lastNewAt: toIso(lastNewAt),
  };
}

/** The first thing that was lacking. */
function explainGap(hour: JudgedHour, settleMs: number): string {
  const { startsAt, searchedThrough, closingSearchAt, reconciledAt, missingCells } = hour;
  if (hour.isFirst) return FIRST_WATCHED;
  if (searchedThrough === null) return "It was never searched before the platform forgot it.";
  if (searchedThrough < startsAt + HOUR_MS)
    return `It was searched only up to ${toIso(searchedThrough)} before the platform forgot it.`;
  if (closingSearchAt === null)
    return "It was not searched from end to end after it had settled, while the platform had all of it.";
  if (reconciledAt === null) return "The platform's counts were never read.";
  if (missingCells > 0)
    return `The platform counted more events than could be copied, under ${missingCells} of its rules.`;
  if (!isMatched(hour, settleMs)) return "It gained events, and the platform's counts were not read again.";
  return "No complete list pass confirmed it after its last new event.";
}

function toIso(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
