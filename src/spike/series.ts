import { addMinute, createHourHistory, type HourHistory, putHour } from "./hour-history.ts";
import { type Finding, judgeMinute } from "./judge-minute.ts";
import { LONGEST_WINDOW, type SpikePolicy, WINDOW_COUNT, WINDOWS } from "./policy.ts";
import { computeThresholds, createThresholds, type Thresholds } from "./thresholds.ts";

/** A power of two: the minutes of three hours, and the hour before them that their windows reach into. */
const RING = 256;
/** A count can still be corrected this many minutes back. */
const AMENDABLE_MINUTES = 120;
/** Late events can make a spike of a minute this far back. */
const RETESTED_MINUTES = 10;

/** One zone's rule, minute by minute: the form of the detector that is fed as time goes by. */
export interface Series {
  readonly history: HourHistory;
  /** Counts by minute modulo the ring. */
  readonly counts: Int32Array;
  /** Events of the last 3, 15 and 60 minutes, the newest included. */
  readonly sums: Int32Array;
  newestMinute: number;
  /** Of the newest minute's hour, and of the hour before it. */
  thresholds: Thresholds;
  previousThresholds: Thresholds;
}

export function createSeries(): Series {
  return {
    history: createHourHistory(),
    counts: new Int32Array(RING),
    sums: new Int32Array(WINDOW_COUNT),
    newestMinute: -1,
    thresholds: createThresholds(),
    previousThresholds: createThresholds(),
  };
}

/**
 * Takes the count of the next closed minute and judges it; minutes that were skipped had no events. Thresholds are
 * computed when a minute is the first of its hour.
 */
export function closeMinute(
  series: Series,
  minute: number,
  count: number,
  policy: SpikePolicy,
): Finding | null {
  if (series.newestMinute < 0) start(series, minute, policy);
  for (let skipped = series.newestMinute + 1; skipped < minute; skipped += 1)
    step(series, skipped, 0, policy);
  step(series, minute, count, policy);
  return judgeMinute(series.sums, series.thresholds);
}

/** Corrects the count of a minute that is closed already; false where it is too long ago. */
export function amendMinute(series: Series, minute: number, count: number): boolean {
  if (minute > series.newestMinute || minute <= series.newestMinute - AMENDABLE_MINUTES) return false;
  series.counts[minute & (RING - 1)] = count;
  const hour = Math.floor(minute / 60);
  recountHour(series, hour);
  // A window of up to an hour that began in this hour can end in the next.
  if ((hour + 1) * 60 <= series.newestMinute) recountHour(series, hour + 1);
  sumsAt(series, series.newestMinute, series.sums);
  return true;
}

/** Judges a minute of the last ten again. */
export function retestMinute(series: Series, minute: number): Finding | null {
  if (minute > series.newestMinute || minute <= series.newestMinute - RETESTED_MINUTES) return null;
  const sameHour = Math.floor(minute / 60) === Math.floor(series.newestMinute / 60);
  const sums = sumsAt(series, minute, new Int32Array(WINDOW_COUNT));
  return judgeMinute(sums, sameHour ? series.thresholds : series.previousThresholds);
}

function start(series: Series, minute: number, policy: SpikePolicy): void {
  series.newestMinute = minute - 1;
  computeThresholds(series.history, Math.floor(minute / 60), policy, series.thresholds);
}

function step(series: Series, minute: number, count: number, policy: SpikePolicy): void {
  const hour = Math.floor(minute / 60);
  if (minute % 60 === 0) {
    [series.thresholds, series.previousThresholds] = [series.previousThresholds, series.thresholds];
    computeThresholds(series.history, hour, policy, series.thresholds);
  }
  const { counts, sums } = series;
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    const leaving = counts[(minute - (WINDOWS[i] as number)) & (RING - 1)] as number;
    sums[i] = (sums[i] as number) + count - leaving;
  }
  counts[minute & (RING - 1)] = count;
  series.newestMinute = minute;
  addMinute(series.history, hour, count, sums);
}

function recountHour(series: Series, hour: number): void {
  const peaks = new Int32Array(WINDOW_COUNT);
  const sums = new Int32Array(WINDOW_COUNT);
  let events = 0;
  for (let minute = hour * 60; minute < (hour + 1) * 60 && minute <= series.newestMinute; minute += 1) {
    events += series.counts[minute & (RING - 1)] as number;
    sumsAt(series, minute, sums);
    for (let i = 0; i < WINDOW_COUNT; i += 1) peaks[i] = Math.max(peaks[i] as number, sums[i] as number);
  }
  putHour(series.history, hour, events, peaks);
}

function sumsAt(series: Series, minute: number, out: Int32Array): Int32Array {
  let sum = 0;
  let back = 0;
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    for (; back < (WINDOWS[i] as number) && back < LONGEST_WINDOW; back += 1) {
      sum += series.counts[(minute - back) & (RING - 1)] as number;
    }
    out[i] = sum;
  }
  return out;
}
