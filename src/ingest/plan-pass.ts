import { isLowerForNow } from "../coverage/find-contradictions.ts";
import { AGREE_LONG_MS, isFresh, settledAt } from "../coverage/hour-proof.ts";
import { DAY_MS } from "../lib/units.ts";
import type { CoveredHour } from "../model/covered-hour.ts";
import { agreedFor } from "../model/look.ts";

export interface PassState {
  /** Start of the pass that `passResult` is of. */
  readonly startedAt: number;
  /** Start of the latest full pass that reached the end. */
  readonly fullPassStartedAt: number | null;
  /** Start of the latest of those that found nothing new. */
  readonly quietPassStartedAt: number | null;
  /** Events that the pass has stored as new. */
  readonly newEntries: number;
  /** Null while the pass runs. */
  readonly passResult: "full" | "short" | "looped" | "token_rejected" | null;
}

export interface PassPolicy {
  /** An event may appear this long after its time. */
  readonly settleMs: number;
  /** Full passes of one day that can prove something begin at least this far apart. */
  readonly fullEveryMs: number;
  /** The same for full passes over today while no hour waits for one: they only look for entries that came late. */
  readonly idleFullEveryMs: number;
  /** Short passes begin this far apart while the list shows nothing that the search has not shown before. */
  readonly shortEveryMs: number;
}

export interface PassedDay {
  /** Epoch ms. */
  readonly dayStart: number;
  /** Its hours with a row that are no gap. */
  readonly hours: readonly CoveredHour[];
  /** The list showed less than before, and only full passes can say that it no longer does. */
  readonly isListSuspect: boolean;
}

/**
 * Which pass a day needs now: `resume` the running one, a `full` one from the first page to the end, a
 * `short` one over the newest pages, or none. Where the search keeps up and the list brings nothing new, short passes are rarer. A day is done when a quiet full pass began after it had settled, and no hour of
 * it needs the list once more. A pass whose token was refused is begun again at once; one that looped waits for its turn,
 * since it would loop again.
 */
export function planPass(
  now: number,
  { dayStart, hours, isListSuspect }: PassedDay,
  state: PassState | null,
  { settleMs, fullEveryMs, idleFullEveryMs, shortEveryMs }: PassPolicy,
): "resume" | "full" | "short" | null {
  if (state === null) return "full";
  const { startedAt, fullPassStartedAt, quietPassStartedAt, passResult } = state;
  if (passResult === null) return "resume";
  const dayEndsSettledAt = dayStart + DAY_MS + settleMs;
  const isProven = hours.every((hour) => !needsList(now, hour, settleMs));
  if (isProven && quietPassStartedAt !== null && quietPassStartedAt >= dayEndsSettledAt) return null;
  if (passResult === "looped") return now - startedAt >= fullEveryMs ? "full" : null;
  if (passResult === "token_rejected" || fullPassStartedAt === null) return "full";
  const isWaitedFor = hours.some(
    (hour) => settledAt(hour, settleMs) <= now && needsList(now, hour, settleMs),
  );
  const isIdle = hours.length > 0 && now < dayEndsSettledAt && !isWaitedFor && !isListSuspect;
  if (now - fullPassStartedAt >= (isIdle ? idleFullEveryMs : fullEveryMs)) return "full";
  if (now >= dayEndsSettledAt) return null;
  const isDue = state.newEntries > 0 || !isSearched(hours, startedAt) || now - startedAt >= shortEveryMs;
  return isDue ? "short" : null;
}

/** Whether the search has read on since `at`: then the list adds raw records, and events only if the search missed some. */
function isSearched(hours: readonly CoveredHour[], at: number): boolean {
  return hours.some(({ searchedThrough }) => searchedThrough !== null && searchedThrough > at);
}

/**
 * Whether a full pass could bring an hour nearer to its seal, or take back that the list showed less than before: the list has
 * not shown exactly what is stored since the hour settled and last gained an event, or has to show twice that there is none.
 */
function needsList(now: number, hour: CoveredHour, settleMs: number): boolean {
  const { state, looks, lastNewAt, missingCells, storedCount } = hour;
  const { list } = looks;
  if (state === "sealed") return list !== undefined && isLowerForNow(list);
  if (!isFresh(list, hour, settledAt(hour, settleMs)) || missingCells > 0) return true;
  if (lastNewAt !== null && lastNewAt >= list.at) return true;
  if (storedCount === 0 && list.count === 0)
    return agreedFor(list) < AGREE_LONG_MS && now >= list.since + AGREE_LONG_MS;
  return list.count !== storedCount || isLowerForNow(list);
}

export interface PassTimes {
  /** Earliest time of an event this pass has stored as new; null while there is none. */
  readonly earliestNew: number | null;
}

/**
 * Whether a short pass has seen enough: a page that brought nothing new and lies wholly before everything the pass
 * stored. Where pages come oldest first that is never so, and the pass goes to the end.
 */
export function isPassedNews(
  page: { newEntries: number; lastAt: number | null; firstAt: number | null },
  before: { firstAt: number | null },
  { earliestNew }: PassTimes,
): boolean {
  if (page.newEntries > 0 || page.lastAt === null) return false;
  if (earliestNew !== null) return page.lastAt < earliestNew;
  // Nothing new at all: only newest-first pages, seen to descend, allow to stop.
  return before.firstAt !== null && page.lastAt <= before.firstAt;
}
