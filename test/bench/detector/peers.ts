/** The minutes an alert covers, half-open. */
export interface AlertSpan {
  readonly from: number;
  readonly to: number;
}

export type Detector = (counts: Int32Array) => AlertSpan[];

function prefixSums(counts: Int32Array): Float64Array {
  const sums = new Float64Array(counts.length + 1);
  for (let i = 0; i < counts.length; i += 1) sums[i + 1] = (sums[i] as number) + (counts[i] as number);
  return sums;
}

/**
 * ElastAlert2's spike rule as its documentation describes it: two adjacent sliding windows; fires when the newer one
 * counts `height` times the older and at least `floor`. Not before two windows after a series' first event; a match
 * empties the reference, which silences the series for two windows.
 */
export function createAdjacentWindows(windowMinutes: number, height: number, floor: number): Detector {
  return (counts) => {
    const sums = prefixSums(counts);
    const first = counts.findIndex((count) => count > 0);
    const alerts: AlertSpan[] = [];
    if (first < 0) return alerts;
    let readyAt = first + 2 * windowMinutes;
    for (let minute = readyAt; minute < counts.length; minute += 1) {
      if (minute < readyAt) continue;
      const middle = sums[minute + 1 - windowMinutes] ?? 0;
      const current = (sums[minute + 1] as number) - middle;
      const reference = middle - (sums[Math.max(0, minute + 1 - 2 * windowMinutes)] as number);
      if (current < floor || current < reference * height) continue;
      alerts.push({ from: minute, to: minute + 1 });
      readyAt = minute + 2 * windowMinutes;
    }
    return alerts;
  };
}

const BUCKET = 5;
const HISTORY = 72;
const SILENT_MINUTES = 120;

/**
 * A z-score over buckets of five minutes against the mean and deviation of the last six hours, with a floor, then
 * silent for two hours: the security events alert of a large edge platform, as published (z 3.5, floor 200).
 */
export function createZScore(z: number, floor: number): Detector {
  return (counts) => {
    const sums = prefixSums(counts);
    const buckets = Array.from(
      { length: Math.floor(counts.length / BUCKET) },
      (_, i) => (sums[(i + 1) * BUCKET] as number) - (sums[i * BUCKET] as number),
    );
    const alerts: AlertSpan[] = [];
    let silentUntil = 0;
    for (let i = HISTORY; i < buckets.length; i += 1) {
      const value = buckets[i] as number;
      const minute = (i + 1) * BUCKET - 1;
      if (value <= floor || minute < silentUntil) continue;
      const past = buckets.slice(i - HISTORY, i);
      const mean = past.reduce((a, b) => a + b, 0) / HISTORY;
      const deviation = Math.sqrt(past.reduce((a, b) => a + (b - mean) ** 2, 0) / HISTORY);
      if (value <= mean + z * deviation) continue;
      alerts.push({ from: minute, to: minute + 1 });
      silentUntil = minute + SILENT_MINUTES;
    }
    return alerts;
  };
}
