import { WINDOWS } from "#model/kinds.ts";
import { FLOOR, LONGEST_WINDOW, type SpikePolicy, WINDOW_COUNT } from "./detection-settings.ts";
import { type Followed, followSeries, isSpiking, type PastEpisode } from "./episode.ts";
import { addMinute, createHourHistory, type HourHistory } from "./thresholds/hour-history.ts";
import { computeThresholds, createThresholds, type Thresholds } from "./thresholds/thresholds.ts";

const HOUR_SUM = WINDOW_COUNT - 1;

/**
 * The detector of one series, fed minute by minute. It needs about ten kilobytes however long the history gets, so
 * that tens of thousands of series can be followed at once. It finds the same episodes as a scan of the whole
 * history.
 */
export interface SeriesWatch extends Followed {
  readonly history: HourHistory;
  /** Counts of the last hour, by minute of the hour. */
  readonly ring: Int32Array;
  readonly sums: Int32Array;
  /** Computed when first needed, which for most series of a zone is never. */
  thresholds: Thresholds | null;
  thresholdsHour: number;
  /** The next minute to take; null before the first. */
  next: number | null;
}

export function createSeriesWatch(): SeriesWatch {
  return {
    history: createHourHistory(),
    ring: new Int32Array(LONGEST_WINDOW),
    sums: new Int32Array(WINDOW_COUNT),
    thresholds: null,
    thresholdsHour: -1,
    episode: null,
    countFrom: 0,
    quietFrom: 0,
    next: null,
  };
}

/**
 * Takes the count of a minute (since the epoch) that is not before `watch.next`. Omitted minutes are zero. Calls
 * `onClosed` with each episode that ends meanwhile.
 */
export function takeMinute(
  watch: SeriesWatch,
  minute: number,
  count: number,
  policy: SpikePolicy,
  onClosed: (episode: PastEpisode) => void,
): void {
  passMinutes(watch, minute, policy, onClosed);
  step(watch, minute, count, policy, onClosed);
}

/** Takes zeros up to `endMinute`, exclusive. */
export function passMinutes(
  watch: SeriesWatch,
  endMinute: number,
  policy: SpikePolicy,
  onClosed: (episode: PastEpisode) => void,
): void {
  watch.next ??= endMinute;
  while (watch.next < endMinute) {
    // With an hour of zeros and no open episode, further zeros change nothing.
    if (watch.episode === null && watch.sums[HOUR_SUM] === 0) watch.next = endMinute;
    else step(watch, watch.next, 0, policy, onClosed);
  }
}

function step(
  watch: SeriesWatch,
  minute: number,
  count: number,
  policy: SpikePolicy,
  onClosed: (episode: PastEpisode) => void,
): void {
  const { history, sums, ring } = watch;
  const hour = Math.floor(minute / 60);
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    const leaving = ring[(minute - (WINDOWS[i] as number)) % LONGEST_WINDOW] as number;
    sums[i] = (sums[i] as number) + count - leaving;
  }
  ring[minute % LONGEST_WINDOW] = count;
  addMinute(history, hour, count, sums);
  watch.next = minute + 1;
  // No threshold is below the floor, and no window counts more than the hour.
  if (watch.episode === null && (sums[HOUR_SUM] as number) < (policy.floor ?? FLOOR)) return;
  const thresholds = thresholdsAt(watch, minute, policy);
  if (watch.episode === null && !isSpiking(sums, thresholds)) return;
  const ended = followSeries(watch, {
    minute,
    thresholds,
    z: policy.z,
    firstHour: history.firstHour,
    sumsFrom: (from) => sumsFrom(watch, minute, from),
  });
  if (ended !== null) onClosed(ended);
}

/** Returns the thresholds of a minute that was taken last. They change with the next hour. */
export function thresholdsAt(watch: SeriesWatch, minute: number, policy: SpikePolicy): Thresholds {
  const hour = Math.floor(minute / 60);
  watch.thresholds ??= createThresholds();
  if (watch.thresholdsHour !== hour) computeThresholds(watch.history, hour, policy, watch.thresholds);
  watch.thresholdsHour = hour;
  return watch.thresholds;
}

const partSums = new Int32Array(WINDOW_COUNT);

/** Returns the events of the windows that end with a minute, without those before `from`. */
function sumsFrom({ sums, ring }: SeriesWatch, minute: number, from: number): Int32Array {
  if (from <= minute - LONGEST_WINDOW + 1) return sums;
  let sum = 0;
  let next = minute;
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    const oldest = Math.max(minute - (WINDOWS[i] as number) + 1, from);
    for (; next >= oldest; next -= 1) sum += ring[next % LONGEST_WINDOW] as number;
    partSums[i] = sum;
  }
  return partSums;
}
