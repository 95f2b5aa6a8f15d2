import { type Episode, followMinute, isOver } from "./episode.ts";
import { WINDOW_COUNT } from "./policy.ts";
import type { Thresholds } from "./thresholds.ts";
import { windowSums } from "./window-sums.ts";

/** The newest minutes of one series, and what is known of its spike. Minutes are numbered since the epoch. */
export interface SeriesInput {
  /** Counts of consecutive minutes, from an hour before the first tested one. */
  readonly counts: ArrayLike<number>;
  readonly firstMinute: number;
  /** Closed minutes to judge, ascending; at least one. Judging a minute again takes late events into account. */
  readonly tested: readonly number[];
  readonly episode: Episode | null;
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
 * Judges the tested minutes in order. Closing is decided at the last one only: after a pause the minutes before may
 * still show that the spike went on.
 */
export function assessSeries(input: SeriesInput): SeriesOutcome {
  const { counts, firstMinute, tested, z } = input;
  const sums = new Int32Array(WINDOW_COUNT);
  let episode = input.episode;
  for (const minute of tested) {
    const known = input.thresholdsOf(Math.floor(minute / 60));
    if (known === undefined || (episode === null && minute < input.freshFrom)) continue;
    windowSums(counts, minute - firstMinute, episode === null ? input.freshFrom - firstMinute : 0, sums);
    episode = followMinute(episode, { minute, sums, z, ...known });
  }
  const last = tested.at(-1);
  const isClosed = episode !== null && last !== undefined && isOver(episode, last);
  return { episode, closedAt: isClosed ? last + 1 : null };
}
