import { type Episode, followMinute, isOver } from "./episode.ts";
import type { Thresholds } from "./thresholds/thresholds.ts";
import { windowSums } from "./thresholds/window-sums.ts";
import { WINDOW_COUNT } from "./thresholds/windows.ts";

/** The newest minutes of one series and the state of its spike. Minutes are numbered since the epoch. */
export interface SeriesInput {
  /** Counts of consecutive minutes, from an hour before the first tested one. */
  readonly counts: ArrayLike<number>;
  readonly firstMinute: number;
  /** Closed minutes to judge, ascending; at least one. Judging a minute again takes late events into account. */
  readonly tested: readonly number[];
  readonly episode: Episode | null;
  /** The first minute that the episode has not been judged for yet; ignored without an episode. */
  readonly firstUnjudged: number;
  /** Minutes before this belong to a closed spike. They neither open another spike nor count towards it. */
  readonly freshFrom: number;
  readonly z: number;
  /** False if the rule may have been seen in hours that are still missing: then no `new-rule` is opened. Default: true. */
  readonly canBeNew?: boolean | undefined;
  /**
   * Returns the thresholds of the hour, and the hour of the rule's first event. A minute of an hour without
   * thresholds is skipped.
   */
  readonly thresholdsOf: (hour: number) => { thresholds: Thresholds; firstHour: number } | undefined;
}

export interface SeriesOutcome {
  /** Null if there is no spike. */
  readonly episode: Episode | null;
  /** The end of the minute that closed the episode; null while it is open. */
  readonly closedAt: number | null;
}

/**
 * Judges the tested minutes in order, up to the one that closes the spike: later minutes belong to another spike.
 * Skipped minutes may have been active, so only those after them count as quiet.
 */
export function assessSeries(input: SeriesInput): SeriesOutcome {
  const { counts, firstMinute, tested, z, canBeNew } = input;
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
    episode = followMinute(episode, { minute, sums, z, canBeNew, ...known });
    if (episode !== null && isOver(episode, minute, quietFrom)) return { episode, closedAt: minute + 1 };
  }
  return { episode, closedAt: null };
}
