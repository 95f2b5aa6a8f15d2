import { type Episode, followMinute, isOver } from "./episode.ts";
import type { Thresholds } from "./thresholds/thresholds.ts";
import { windowSums } from "./thresholds/window-sums.ts";
import { WINDOW_COUNT } from "./thresholds/windows.ts";

/** The newest minutes of one series, and what is known of its spike. Minutes are numbered since the epoch. */
export interface SeriesInput {
  /** Counts of consecutive minutes, from an hour before the first tested one. */
  readonly counts: ArrayLike<number>;
  readonly firstMinute: number;
  /** Closed minutes to judge, ascending; at least one. Judging a minute again takes late events into account. */
  readonly tested: readonly number[];
  readonly episode: Episode | null;
  /** The first minute the episode has not been carried through yet; means nothing where there is none. */
  readonly firstUnjudged: number;
  /** Minutes before this belong to a spike that has closed: they neither open another nor count towards it. */
  readonly freshFrom: number;
  readonly z: number;
  /** Thresholds of the hour, and the hour of the rule's first event; a minute of an hour without is passed over. */
  readonly thresholdsOf: (hour: number) => { thresholds: Thresholds; firstHour: number } | undefined;
}

export interface SeriesOutcome {
  /** Null where there is no spike. */
  readonly episode: Episode | null;
  /** The end of the minute that closed it; null while it is open. */
  readonly closedAt: number | null;
}

/**
 * Judges the tested minutes in order, up to the one that closes the spike: what comes after it is another's. Minutes
 * that were passed over may have been active, so only those after them count as quiet.
 */
export function assessSeries(input: SeriesInput): SeriesOutcome {
  const { counts, firstMinute, tested, z } = input;
  const sums = new Int32Array(WINDOW_COUNT);
  let episode = input.episode;
  let quietFrom = 0;
  let next = input.firstUnjudged;
  for (const minute of tested) {
    const known = input.thresholdsOf(Math.floor(minute / 60));
    if (known === undefined || minute < input.freshFrom) continue;
    if (minute > next) quietFrom = minute;
    next = Math.max(next, minute + 1);
    windowSums(counts, minute - firstMinute, input.freshFrom - firstMinute, sums);
    episode = followMinute(episode, { minute, sums, z, ...known });
    if (episode !== null && isOver(episode, minute, quietFrom)) return { episode, closedAt: minute + 1 };
  }
  return { episode, closedAt: null };
}
