import { windowSums } from "#detection/rules/assess-series.ts";
import { type SpikePolicy, WINDOW_COUNT } from "#detection/rules/detection-settings.ts";
import { type Episode, followMinute, isOver, isSpiking } from "#detection/rules/episode.ts";
import {
  addMinute,
  createHourHistory,
  type HourHistory,
  resetHours,
} from "#detection/rules/thresholds/hour-history.ts";
import {
  computeThresholds,
  createThresholds,
  type Thresholds,
} from "#detection/rules/thresholds/thresholds.ts";
import { WINDOWS } from "#model/kinds.ts";

/** Work space of a scan. Reusing it for every series keeps the scan free of allocations. */
export interface ScanSpace {
  readonly history: HourHistory;
  readonly sums: Int32Array;
  readonly thresholds: Thresholds;
}

function createScanSpace(): ScanSpace {
  return {
    history: createHourHistory(),
    sums: new Int32Array(WINDOW_COUNT),
    thresholds: createThresholds(),
  };
}

/**
 * Runs the detector over a whole history. `counts` holds one number per minute, the first being `firstMinute` (since
 * the epoch), which lies at or before the rule's first event. Calls `visit` for each minute in order. The arguments
 * of `visit` live in `space` and change with the next minute.
 */
export function scanHistory(
  counts: ArrayLike<number>,
  firstMinute: number,
  policy: SpikePolicy,
  visit: (minute: number, space: ScanSpace) => void,
  space: ScanSpace = createScanSpace(),
): void {
  const { history, sums, thresholds } = space;
  resetHours(history);
  sums.fill(0);
  for (let index = 0; index < counts.length; index += 1) {
    const minute = firstMinute + index;
    const hour = Math.floor(minute / 60);
    if (index === 0 || minute % 60 === 0) computeThresholds(history, hour, policy, thresholds);
    const count = counts[index] as number;
    for (let i = 0; i < WINDOW_COUNT; i += 1) {
      const leaving = index - (WINDOWS[i] as number);
      sums[i] = (sums[i] as number) + count - (leaving < 0 ? 0 : (counts[leaving] as number));
    }
    addMinute(history, hour, count, sums);
    visit(minute, space);
  }
}

const CALM_MINUTES = 10;

/** The count of a window at present: of an hour, at most four times its last quarter. */
function countNow(sums: ArrayLike<number>, windowMinutes: number): number {
  const [, quarter = 0, hour = 0] = Array.from(sums);
  return windowMinutes === 60
    ? Math.min(hour, 4 * quarter)
    : (sums[WINDOWS.indexOf(windowMinutes as 3)] ?? 0);
}

/** Returns where a second wave may begin: after ten quiet minutes, or with three minutes eight times as busy as the twelve before. */
function beginOfWave(
  { lastActiveAt, openedAt, peak, windowMinutes }: Episode,
  counts: ArrayLike<number>,
  { index, from, firstMinute }: { index: number; from: number; firstMinute: number },
): number | null {
  const calm = lastActiveAt + CALM_MINUTES - firstMinute;
  if (index >= calm) return calm;
  if (index < Math.max(openedAt - firstMinute, from) + 15) return null;
  const meanOf = (first: number, end: number) => {
    let sum = 0;
    for (let at = Math.max(first, 0); at < end; at += 1) sum += counts[at] ?? 0;
    return sum / (end - first);
  };
  const [before, now] = [meanOf(index - 14, index - 2), meanOf(index - 2, index + 1)];
  return now >= 8 * before && before <= peak / windowMinutes / 2 ? index - 2 : null;
}

/** An episode; `closedAt` is null if the history ends first. */
export type FoundEpisode = Episode & { readonly closedAt: number | null };

/** Returns every spike of a history, in order. */
export function findEpisodes(
  counts: ArrayLike<number>,
  firstMinute: number,
  policy: SpikePolicy,
  space: ScanSpace = createScanSpace(),
): FoundEpisode[] {
  const found: FoundEpisode[] = [];
  let episode: Episode | null = null;
  let from = 0;
  scanHistory(
    counts,
    firstMinute,
    policy,
    (minute, { history, sums, thresholds }) => {
      if (episode === null && !isSpiking(sums, thresholds)) return;
      const index = minute - firstMinute;
      const { z } = policy;
      if (episode !== null) {
        const wave = beginOfWave(episode, counts, { index, from, firstMinute });
        // What rises again is a second wave, without the events of the first.
        if (wave !== null && isSpiking(windowSums(counts, index, wave), thresholds)) {
          found.push({ ...episode, closedAt: firstMinute + wave });
          episode = null;
          from = wave;
        }
      }
      const newSums = windowSums(counts, index, from);
      episode = followMinute(episode, { minute, sums: newSums, thresholds, z, firstHour: history.firstHour });
      if (episode === null || !isOver(episode, minute)) return;
      found.push({ ...episode, count: countNow(newSums, episode.windowMinutes), closedAt: minute + 1 });
      episode = null;
      from = index + 1;
    },
    space,
  );
  if (episode !== null) found.push({ ...(episode as Episode), closedAt: null });
  return found;
}
