import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { CopiedHour } from "#model/covered-hour.ts";

/** The platform shows an event for 72 hours. What a person brings from elsewhere is not judged. */
const LOOKBACK_HOURS = 96;
/** An hour is judged late only if it ended so long ago. Until then the detectors may still judge it. */
const SETTLED_MINUTES = 20;
/** A part of a long outage: more events than this are judged in several parts. */
const MAX_EVENTS = 2_000_000;

/** Hours [from, to) that have to be judged, and the minutes [fromMinute, toMinute) that nobody has judged of them. */
export interface LateSpan {
  readonly from: number;
  readonly to: number;
  readonly fromMinute: number;
  readonly toMinute: number;
  /** False if hours after `to` have to be judged, too. */
  readonly isLast: boolean;
  /** Whether hours of it gained events while the hour after it was judged. */
  readonly isRecent: boolean;
}

/** Returns the time in which hours begin that may be judged late: [fromMs, toMs). */
export function judgeableHours(nowMs: number): { fromMs: number; toMs: number } {
  const toMs = Math.floor((nowMs - SETTLED_MINUTES * MINUTE_MS) / HOUR_MS) * HOUR_MS;
  return { fromMs: toMs - LOOKBACK_HOURS * HOUR_MS, toMs };
}

/**
 * Returns the hours of a zone to judge late; null if there are none, or if one of them is still being copied. Also hours that
 * were judged are among them if they follow one that was not: their thresholds, and the windows of the first one, lacked its
 * events. An outage that ends within an hour waits for the end of that hour, so that there is one message about it. `all` are
 * the hours from the oldest judgeable one to now, `settled` the first of them that is not judgeable yet.
 */
export function findLateSpan(all: readonly CopiedHour[], settled: number): LateSpan | null {
  const hours = all.filter(({ hour }) => hour < settled);
  const next = all.find(({ hour }) => hour === settled);
  const first = hours.findIndex(({ isCopied, isJudged }) => isCopied && !isJudged);
  const newest = hours.findLastIndex(({ isCopied }) => isCopied);
  if (first === -1) return null;
  // If the platform refuses the search, hours are sealed some time after their end. They wait for nothing else.
  const isSearched = hours.findLastIndex((hour) => hour.isSearched) >= newest;
  const judgeable = hours.slice(first, isSearched ? hours.length : newest + 1);
  if (judgeable.some(({ isCopied, isGap }) => !isCopied && !isGap)) return null;
  let [events, taken] = [0, 0];
  for (; taken < judgeable.length && (taken === 0 || events < MAX_EVENTS); taken += 1)
    events += judgeable[taken]?.events ?? 0;
  const span = judgeable.slice(0, taken);
  const to = (span.at(-1)?.hour ?? 0) + 1;
  const isLast = taken === judgeable.length;
  if (isLast && span.at(-1)?.isJudged === false && (next?.rulesFrom ?? 0) > settled * 60) return null;
  return {
    from: span[0]?.hour ?? 0,
    to,
    ...unjudgedMinutes(span),
    isLast,
    isRecent: span.some(({ lastNewAt }) => (lastNewAt ?? 0) >= to * HOUR_MS + SETTLED_MINUTES * MINUTE_MS),
  };
}

function unjudgedMinutes(span: readonly CopiedHour[]): Pick<LateSpan, "fromMinute" | "toMinute"> {
  const unjudged = span.filter(({ isJudged, isGap }) => !isJudged && !isGap);
  const [first, last] = [unjudged[0], unjudged.at(-1)];
  if (first === undefined || last === undefined) return { fromMinute: 0, toMinute: 0 };
  const [begin, end] = [first.hour * 60, last.hour * 60 + 60];
  const isBegun = (first.rulesFrom ?? end) <= begin && (first.rulesThrough ?? end) < begin + 60;
  const isResumed = (last.rulesThrough ?? 0) >= end && (last.rulesFrom ?? 0) > last.hour * 60;
  return {
    fromMinute: isBegun ? (first.rulesThrough ?? begin) : begin,
    toMinute: isResumed ? (last.rulesFrom ?? end) : end,
  };
}
