/** Plans searches: their spans, their periods and repairs. */
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";

export interface SearchedHour {
  readonly startsAt: number;
  /** End of the part of the hour that was searched; null before it has begun. */
  readonly searchedThrough: number | null;
}

/** The span [from, to) to search next; once stored, its hour counts as searched through `to`. */
export interface SearchSpan {
  readonly hour: number;
  readonly from: number;
  readonly to: number;
  /** True if no part of this hour was searched before, so that its events are probably all new. */
  readonly isFirst: boolean;
}

interface SearchPlanOptions {
  /** The newest minutes are searched before the backfill once they are older than this. */
  readonly freshMs: number;
  /** Length of the time before the last search that is read again, for late events. */
  readonly overlapMs: number;
  /** Length of a period. All searches of it but the first read only a little of the overlap, because more would cost as much again. */
  readonly periodMs?: number;
  /** How long the platform keeps events. */
  readonly keptMs?: number;
}

/** Enough for events that the platform shows a few seconds late. */
export const SHORT_OVERLAP_MS = 30_000;

/**
 * Returns the next span to search, or null when everything is searched. The newest minutes come first as soon as they
 * are older than `freshMs`, so that a long backfill hides no attack. Then comes the hour that expires first. All
 * times in epoch ms; `hours` are oldest first.
 */
export function planSearch(
  now: number,
  hours: readonly SearchedHour[],
  { freshMs, overlapMs, periodMs = 1, keptMs }: SearchPlanOptions,
): SearchSpan | null {
  const horizon = horizonAt(now, keptMs);
  const searched = new Map(hours.map(({ startsAt, searchedThrough }) => [startsAt, searchedThrough]));
  const spanOf = (hour: number): SearchSpan => {
    const through = searched.get(hour) ?? null;
    const isSamePeriod = Math.floor((through ?? 0) / periodMs) === Math.floor(now / periodMs);
    const overlap = isSamePeriod ? Math.min(overlapMs, SHORT_OVERLAP_MS) : overlapMs;
    const from = Math.max(through === null ? hour : through - overlap, horizon);
    return { hour, from, to: Math.min(hour + HOUR_MS, now), isFirst: through === null };
  };
  const isUnfinished = (hour: number) => (searched.get(hour) ?? 0) < hour + HOUR_MS;
  const liveHour = startOfHour(now);
  const justEnded = liveHour - HOUR_MS;
  if (now - (searched.get(liveHour) ?? liveHour - freshMs) >= freshMs && now > liveHour) {
    const live = spanOf(liveHour);
    // A search that begins exactly on the hour would end the previous hour too early for the overlap to reach back
    // into it.
    const isJoined = live.isFirst && !isUnfinished(justEnded);
    return isJoined ? { ...live, from: liveHour - overlapMs, isFirst: false } : live;
  }
  // The hour that has just ended lacks its last minutes, so it still belongs to the newest ones.
  if (isUnfinished(justEnded) && searched.get(justEnded)) return spanOf(justEnded);
  for (let hour = startOfHour(horizon); hour < liveHour; hour += HOUR_MS) {
    if (isUnfinished(hour)) return spanOf(hour);
  }
  return null;
}

/**
 * Returns whether every hour of [fromMs, toMs) that has ended and that the platform still serves has been searched to
 * its end.
 */
export function isBackfilled(
  now: number,
  hours: readonly SearchedHour[],
  { fromMs = 0, toMs = now, keptMs }: { fromMs?: number; toMs?: number; keptMs?: number } = {},
): boolean {
  const searched = new Map(hours.map(({ startsAt, searchedThrough }) => [startsAt, searchedThrough]));
  const last = Math.min(startOfHour(now), toMs);
  for (let hour = Math.max(startOfHour(horizonAt(now, keptMs)), fromMs); hour < last; hour += HOUR_MS) {
    if ((searched.get(hour) ?? 0) < hour + HOUR_MS) return false;
  }
  return true;
}

/** Paging a larger result costs more for every page and repeats more after a crash. */
const MAX_EVENTS = 5_000;
const TARGET_EVENTS = 4_000;

/**
 * Divides a span into equal parts, in order, so that each holds a limited number of events. Returns null when that is
 * not needed.
 */
export function splitSpan(from: number, to: number, total: number): { from: number; to: number }[] | null {
  if (total <= MAX_EVENTS || to - from < 2) return null;
  const parts = Math.min(Math.ceil(total / TARGET_EVENTS), to - from);
  const cut = (index: number) => from + Math.floor(((to - from) * index) / parts);
  return Array.from({ length: parts }, (_, index) => ({ from: cut(index), to: cut(index + 1) }));
}

/** Largest share of the request budget that the newest minutes of all zones may take, at one search per poll. */
const POLL_SHARE = 0.6;
/** Largest share of the short list passes, at one page per pass. The rest of the budget is left to the proof. */
const SHORT_PASS_SHARE = 0.1;
/** Largest share of further polls of zones in which something rises. */
const RISING_SHARE = 0.1;
/** Largest share of the comparisons that look for late events, at one search per comparison. */
const LATE_SHARE = 0.05;
/** Late events are looked for at least so often: every ten minutes, less what a tick may come too early. */
const LATE_MS = 9.5 * MINUTE_MS;
/** Pause between two polls of such a zone: that of the sweep. */
const RISING_EVERY_MS = 10_000;
/** At every second tick: ticks are a minute apart, and a pass begins shortly after its tick. */
const SHORT_PASS_MS = 90_000;

interface PollSchedule {
  readonly zones: number;
  readonly requestsPerSecond: number;
  /** Pauses between two runs of the tick that polls. */
  readonly shortestMs: number;
  readonly longestMs: number;
}

/**
 * Returns how many zones one run of the tick polls, how many requests the polls of rising zones between two ticks may take
 * every ten seconds (none if the tick is as often), how long a zone waits at most for its next poll, how old its newest
 * minutes are then at least, how often its list gets a short pass, and how often late events are looked for. With many zones
 * polls, passes and searches for late events are rarer, so that the requests fit into the budget.
 */
export function planPeriods({ zones, requestsPerSecond, shortestMs, longestMs }: PollSchedule) {
  const mostPolls = Math.max(1, Math.floor((requestsPerSecond * POLL_SHARE * shortestMs) / 1_000));
  const mostRising = Math.max(1, Math.floor((requestsPerSecond * RISING_SHARE * RISING_EVERY_MS) / 1_000));
  const passMs = Math.ceil(zones / (requestsPerSecond * SHORT_PASS_SHARE)) * 1_000;
  return {
    mostPolls,
    risingRequests: longestMs > RISING_EVERY_MS ? mostRising : 0,
    pollEveryMs: Math.max(1, Math.ceil(zones / mostPolls)) * longestMs,
    freshMs: shortestMs / 2,
    shortPassEveryMs: Math.max(SHORT_PASS_MS, passMs),
    lateEveryMs: Math.min(LATE_MS, Math.ceil(zones / (requestsPerSecond * LATE_SHARE)) * 1_000),
  };
}

/** An hour with more differing rules than this is cheaper to search as a whole. */
const MAX_CELLS = 5;
/**
 * After this many searches without success for a rule, the whole hour is searched: the events may belong to another
 * rule.
 */
const MAX_VAIN_REPAIRS = 2;

interface MissingCell {
  readonly startsAt: number;
  readonly ruleId: string;
  /** Number of searches for the cell so far. */
  readonly repairs: number;
}

export interface Repair {
  readonly startsAt: number;
  /** Rules to search one by one; null for the whole hour. */
  readonly ruleIds: readonly string[] | null;
}

/** Returns the searches for the cells with missing events. The hour that expires first comes first. */
export function planRepairs(cells: readonly MissingCell[]): Repair[] {
  const byHour = Map.groupBy(cells, ({ startsAt }) => startsAt);
  return [...byHour]
    .sort(([a], [b]) => a - b)
    .map(([startsAt, missing]) => {
      const isWhole =
        missing.length > MAX_CELLS ||
        missing.some(({ ruleId, repairs }) => ruleId === "" || repairs >= MAX_VAIN_REPAIRS);
      return { startsAt, ruleIds: isWhole ? null : missing.map(({ ruleId }) => ruleId) };
    });
}
