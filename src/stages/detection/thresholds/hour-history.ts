import { WINDOW_COUNT } from "./windows.ts";

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
