import { WINDOWS, type WindowMinutes } from "#model/kinds.ts";
import type { Thresholds } from "./thresholds/thresholds.ts";
import { WINDOW_COUNT } from "./thresholds/windows.ts";

/** The window of a minute with the highest score among those at or above their threshold. */
export interface Finding {
  readonly windowMinutes: WindowMinutes;
  /** S, the number of events of the window. */
  readonly count: number;
  readonly usual: number;
  readonly threshold: number;
  /** Deviations above the expected peak, at least z. */
  readonly score: number;
}

/** Returns whether a window reaches its threshold. `sums`: events of the last 3, 15 and 60 closed minutes. */
export function isSpiking(sums: ArrayLike<number>, { threshold }: Thresholds): boolean {
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    if ((sums[i] as number) >= (threshold[i] as number)) return true;
  }
  return false;
}

/** Returns the minute's finding, or null if no window reaches its threshold. */
export function judgeMinute(sums: ArrayLike<number>, thresholds: Thresholds): Finding | null {
  let best: Finding | null = null;
  for (const [i, windowMinutes] of WINDOWS.entries()) {
    const count = sums[i] as number;
    const threshold = thresholds.threshold[i] as number;
    if (count < threshold) continue;
    const score = (Math.log1p(count) - (thresholds.level[i] as number)) / (thresholds.deviation[i] as number);
    if (best !== null && best.score >= score) continue;
    best = { windowMinutes, count, usual: thresholds.usual[i] as number, threshold, score };
  }
  return best;
}

/**
 * Returns whether every window is below half of its threshold. Two exceptions keep spikes from staying open for long.
 * On a busy rule half of the threshold can lie below everyday peaks, so a window within one deviation of the expected
 * peak is quiet too. The hour is judged by four times its last quarter if that is less, because otherwise an attack
 * that is over would keep its spike open for another hour.
 */
export function isQuiet(sums: ArrayLike<number>, thresholds: Thresholds): boolean {
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    const everyday = Math.exp((thresholds.level[i] as number) + (thresholds.deviation[i] as number)) - 1;
    if (presentCount(sums, i) >= Math.max((thresholds.threshold[i] as number) / 2, everyday)) return false;
  }
  return true;
}

/** Returns the count of a window as it is at present: of an hour, four times its last quarter if that is less. */
export function presentCount(sums: ArrayLike<number>, window: number): number {
  const count = sums[window] as number;
  return window === WINDOW_COUNT - 1 ? Math.min(count, 4 * (sums[window - 1] as number)) : count;
}
