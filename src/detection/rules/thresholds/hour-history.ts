/** The history of a rule by hour, and what its daily counts say about it. */

import { WINDOWS } from "#model/kinds.ts";
import type { WafRuleMetricsResponse } from "#platform/contract/rules.ts";
import { parseMetricsDay } from "#platform/rules.ts";
import { WINDOW_COUNT } from "../detection-settings.ts";

/** 168 hours are judged, and the two newest are not. A few more are kept so that late counts find their hour. */
const CAPACITY = 192;

/**
 * The hours of a series: n, its events, and P_w, the largest count of a window that ended in it. A ring buffer of
 * eight days. Hours are numbered since the epoch. An hour without a recorded count is zero.
 */
export interface HourHistory {
  /** The hour of the series' first event; Infinity before it. */
  firstHour: number;
  newestHour: number;
  readonly events: Int32Array;
  /** P of hour h and window i at `(h % capacity) * 3 + i`. */
  readonly peaks: Int32Array;
}

export function createHourHistory(): HourHistory {
  return {
    firstHour: Number.POSITIVE_INFINITY,
    newestHour: -1,
    events: new Int32Array(CAPACITY),
    peaks: new Int32Array(CAPACITY * WINDOW_COUNT),
  };
}

/** Empties the history for the next series. */
export function resetHours(history: HourHistory): void {
  history.firstHour = Number.POSITIVE_INFINITY;
  history.newestHour = -1;
  history.events.fill(0);
  history.peaks.fill(0);
}

export function slotOf(hour: number): number {
  return hour % CAPACITY;
}

/** Makes `hour` the newest; hours in between are zero. An earlier hour changes nothing. */
export function advanceHours(history: HourHistory, hour: number): void {
  const from = Math.max(history.newestHour + 1, hour - CAPACITY + 1);
  for (let passed = from; passed <= hour; passed += 1) {
    const slot = slotOf(passed);
    history.events[slot] = 0;
    history.peaks.fill(0, slot * WINDOW_COUNT, (slot + 1) * WINDOW_COUNT);
  }
  history.newestHour = Math.max(history.newestHour, hour);
}

/** Replaces the values of an hour by those of `peaks` from `first` on. Ignores an hour that is too old to be kept. */
export function putHour(
  history: HourHistory,
  hour: number,
  events: number,
  peaks: ArrayLike<number>,
  first = 0,
): void {
  advanceHours(history, hour);
  if (hour <= history.newestHour - CAPACITY) return;
  const slot = slotOf(hour);
  history.events[slot] = events;
  for (let i = 0; i < WINDOW_COUNT; i += 1) history.peaks[slot * WINDOW_COUNT + i] = peaks[first + i] ?? 0;
  if (events > 0) history.firstHour = Math.min(history.firstHour, hour);
}

/** Adds one closed minute and the windows that end with it to the newest hour. */
export function addMinute(history: HourHistory, hour: number, count: number, sums: ArrayLike<number>): void {
  if (hour > history.newestHour) advanceHours(history, hour);
  const slot = slotOf(hour);
  history.events[slot] = (history.events[slot] as number) + count;
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    const at = slot * WINDOW_COUNT + i;
    history.peaks[at] = Math.max(history.peaks[at] as number, sums[i] as number);
  }
  if (count > 0 && hour < history.firstHour) history.firstHour = hour;
}

/**
 * The expectation for a rule without history, from the platform's own daily counts. Per window (3, 15, 60 minutes);
 * logarithms are natural, of 1 + count.
 */
export interface RulePrior {
  /** Expected logarithm of an hour's peak. */
  readonly level: readonly number[];
  /** Variance of that logarithm from day to day. */
  readonly variance: readonly number[];
  /** Events of an hour, on average. */
  readonly eventsPerHour: number;
}

/**
 * Returns the prior from the totals of days in any order, or null without any event. A day's events are taken as
 * spread evenly: m = total / 24 * w / 60 in a window, and the hour's largest window reaches m + 2 * sqrt(m).
 */
export function toRulePrior(dailyTotals: readonly number[]): RulePrior | null {
  if (!dailyTotals.some((total) => total > 0)) return null;
  const peaks = WINDOWS.map((minutes) =>
    dailyTotals.map((total) => {
      const usual = (total / 24) * (minutes / 60);
      return Math.log1p(usual + 2 * Math.sqrt(usual));
    }),
  );
  const level = peaks.map(mean);
  const variance = peaks.map((logs, i) => mean(logs.map((log) => (log - (level[i] as number)) ** 2)));
  return { level, variance, eventsPerHour: mean(dailyTotals) / 24 };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The platform's counts of a rule on one UTC day. */
export interface DailyCounts {
  /** `yyyy-MM-dd`. */
  readonly day: string;
  readonly total: number;
  readonly blocked: number;
  readonly logged: number;
  readonly challenged: number;
}

/** Returns the days of an answer. Skips keys that are no day. If a day occurs twice, the greater count wins. */
export function toDailyCounts({ data }: Pick<WafRuleMetricsResponse, "data">): DailyCounts[] {
  const days = new Map<string, DailyCounts>();
  for (const [key, counters] of Object.entries(data.overviewPastTwentyEightDays)) {
    const day = parseMetricsDay(key);
    const { totalTriggers: total, blockedRequests, loggedRequests, challengedRequests } = counters;
    if (day === null || (days.get(day)?.total ?? -1) >= total) continue;
    days.set(day, {
      day,
      total,
      blocked: blockedRequests,
      logged: loggedRequests,
      challenged: challengedRequests,
    });
  }
  return [...days.values()];
}
