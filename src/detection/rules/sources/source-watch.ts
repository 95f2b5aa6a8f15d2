import { MINUTES_PER_DAY } from "#lib/units.ts";
import { SOURCE_KINDS, type SourceKind, WINDOWS } from "#model/kinds.ts";
import { isLearning } from "#model/rules.ts";
import { WINDOW_COUNT } from "../detection-settings.ts";
import { addMinute, createHourHistory, type HourHistory } from "../thresholds/hour-history.ts";
import type { Thresholds } from "../thresholds/thresholds.ts";
import { type FiredMinute, judgeSources } from "./judge-sources.ts";
import { createSourceCounter, ofEachKind, type SourceCounter, type SourceMinute } from "./source-counter.ts";
import type { SourceEvent } from "./source-event.ts";
import { atFloor, computeSourceThresholds, floorOf, isBusy, type SourcePolicy } from "./source-thresholds.ts";
import { createUsualRules, type UsualRules } from "./usual-rules.ts";

/** The knowledge of a watch about the time before its first minute. */
export interface SourceMemory {
  readonly histories: Readonly<Record<SourceKind, HourHistory>>;
  readonly usual: UsualRules;
  /** The minute of the zone's first event; null before it. */
  readonly firstMinute: number | null;
  /** The first minute to close; null: that of the first event. */
  readonly nextMinute: number | null;
}

/** Follows the source series of one zone, minute by minute. Minutes are numbered since the epoch. */
export interface SourceWatch {
  readonly counter: SourceCounter;
  /** Returns the minute of the zone's first event, as far as the watch knows; null before it. */
  readonly firstMinute: () => number | null;
  /** Takes an event of a minute that has not been closed. */
  readonly take: (event: SourceEvent, minute: number) => void;
  /**
   * Closes every minute before `minute`, in order. Returns those in which a key reached its line. With `judgeFrom`,
   * earlier minutes are counted and not judged.
   */
  readonly closeUntil: (minute: number, judgeFrom?: number) => FiredMinute[];
  /**
   * Returns the keys that reach their lines in a minute that is not over, by the events that were taken of it; null without
   * any. Counts only grow, so these reach them at its end, too. The minute is to be taken again from its beginning then.
   */
  readonly judgeRunning: (minute: number) => FiredMinute | null;
  /** Returns whether a series has come halfway to its line within the last quarter of an hour. */
  readonly isRising: () => boolean;
  /** Has the thresholds computed again, because hours of the history have changed. */
  readonly forgetThresholds: () => void;
}

function emptyMemory(): SourceMemory {
  const histories = ofEachKind(createHourHistory);
  return { histories, usual: createUsualRules(), firstMinute: null, nextMinute: null };
}

/** `withRules` also counts the addresses of each rule. */
export function createSourceWatch(
  { withRules, ...policy }: SourcePolicy & { readonly withRules?: boolean } = {},
  { histories, usual, ...before }: SourceMemory = emptyMemory(),
): SourceWatch {
  const counter = createSourceCounter({ withRules });
  const thresholds = new Map<SourceKind, Thresholds>();
  let { firstMinute, nextMinute: next } = before;
  let thresholdsHour = -1;
  let isRising = false;

  function take(event: SourceEvent, minute: number): void {
    if (firstMinute === null) {
      firstMinute = minute;
      for (const kind of SOURCE_KINDS) histories[kind].firstHour = Math.floor(minute / 60);
    }
    next ??= minute;
    counter.take(event, minute);
  }

  function thresholdsOf(kind: SourceKind, hour: number): Thresholds {
    if (thresholdsHour !== hour) thresholds.clear();
    thresholdsHour = hour;
    const found = thresholds.get(kind) ?? computeSourceThresholds(kind, histories[kind], hour, policy);
    thresholds.set(kind, found);
    return found;
  }

  function closeMinute(minute: number, isJudged: boolean): FiredMinute | null {
    const hour = Math.floor(minute / 60);
    const day = Math.floor(minute / MINUTES_PER_DAY);
    const usualOf = usual.usualOn(day);
    const counts = counter.close(minute, usualOf, (address, peaks) => usual.note(address, day, peaks));
    for (const kind of SOURCE_KINDS) addMinute(histories[kind], hour, 0, counts[kind]);
    isRising = false;
    return isJudged ? judge(minute, counts) : null;
  }

  function judge(minute: number, counts: SourceMinute): FiredMinute | null {
    // In a zone's first day nothing has a history, so only addresses are judged, by fixed lines.
    const isFirstDay = isLearning(firstMinute, minute);
    const hour = Math.floor(minute / 60);
    const usualOf = usual.usualOn(Math.floor(minute / MINUTES_PER_DAY));
    const linesOf = (kind: SourceKind) =>
      isFirstDay ? atFloor(kind, thresholdsOf(kind, hour)) : thresholdsOf(kind, hour);
    const kinds = isFirstDay ? (["rules_per_ip"] as const) : SOURCE_KINDS;
    isRising =
      counter.busiest(minute).some(isBusy) || kinds.some((kind) => isHalfway(counts[kind], kind, linesOf));
    return judgeSources(minute, counts, { counter, usualOf, thresholdsOf: linesOf, isFirstDay });
  }

  function closeUntil(minute: number, judgeFrom = 0): FiredMinute[] {
    const fired: FiredMinute[] = [];
    if (next === null) return fired;
    for (; next < minute; next += 1) {
      const one = closeMinute(next, next >= judgeFrom);
      if (one !== null) fired.push(one);
    }
    return fired;
  }

  return {
    counter,
    firstMinute: () => firstMinute,
    take,
    closeUntil,
    judgeRunning(minute) {
      const usualOf = usual.usualOn(Math.floor(minute / MINUTES_PER_DAY));
      const fired = judge(minute, counter.close(minute, usualOf));
      counter.forgetMinute();
      return fired;
    },
    isRising: () => isRising,
    forgetThresholds: () => thresholds.clear(),
  };
}

/** The windows of 3 and 15 minutes: that of an hour stays high for an hour. */
function isHalfway(
  counts: ArrayLike<number>,
  kind: SourceKind,
  thresholdsOf: (kind: SourceKind) => Thresholds,
): boolean {
  const isHalf = (line: number, i: number) => i < WINDOW_COUNT - 1 && (counts[i] as number) >= line / 2;
  // No line is lower than the floor, and most minutes of most zones need no thresholds.
  if (!WINDOWS.some((_, i) => isHalf(floorOf(kind), i))) return false;
  return thresholdsOf(kind).threshold.some(isHalf);
}
