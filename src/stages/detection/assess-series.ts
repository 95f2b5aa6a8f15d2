import { WINDOWS } from "#model/kinds.ts";
import { isGraver } from "#model/severity.ts";
import { calmSince, type Episode, endEpisode, followMinute, isOver } from "./episode.ts";
import { isSpiking } from "./judge-minute.ts";
import type { Thresholds } from "./thresholds/thresholds.ts";
import { WINDOW_COUNT } from "./thresholds/windows.ts";

/** The newest minutes of one series and the state of its spike. Minutes are numbered since the epoch. */
export interface SeriesInput {
  /** Counts of consecutive minutes, from an hour before the first tested one. */
  readonly counts: ArrayLike<number>;
  readonly firstMinute: number;
  /** Closed minutes to judge, ascending; at least one. Judging a minute again takes late events into account. */
  readonly tested: readonly number[];
  /**
   * The running minute; none if left out. Its count can only grow, so it opens a spike and makes one graver, and is never
   * quiet.
   */
  readonly running?: number;
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
  /**
   * The end of the minute that closed the episode; null while it is open. A second wave closes it when it had been calm for ten
   * minutes; the minutes after that open another spike.
   */
  readonly closedAt: number | null;
  /** The end of the latest minute that the counts of the episode include. */
  readonly countedTo: number;
  /**
   * Whether the zone is polled more often, because a window would reach its threshold by as much growth as in
   * the last two minutes. Half of the threshold alone is everyday traffic of a busy rule.
   */
  readonly isRising: boolean;
}

/**
 * Judges the tested minutes in order, up to the one that closes the spike: later minutes belong to another spike.
 * Skipped minutes may have been active, so only those after them count as quiet. Judges the running minute last. What it
 * changes is judged again when it is over, because no minute but a tested one counts as judged.
 */
export function assessSeries(input: SeriesInput): SeriesOutcome {
  const { counts, firstMinute, tested, z, canBeNew, running } = input;
  const sums = new Int32Array(WINDOW_COUNT);
  const countedTo = (tested.at(-1) ?? 0) + 1;
  let episode = input.episode;
  let quietFrom = 0;
  let next = input.firstUnjudged;
  const beginsWave = (minute: number, thresholds: Thresholds) => {
    const calm = episode === null ? null : calmSince(episode, minute, quietFrom);
    if (calm === null) return null;
    return isSpiking(windowSums(counts, minute - firstMinute, calm - firstMinute), thresholds) ? calm : null;
  };
  for (const minute of tested) {
    const known = input.thresholdsOf(Math.floor(minute / 60));
    if (known === undefined || minute < input.freshFrom) continue;
    if (minute > next) quietFrom = minute;
    // A minute that is judged again was quiet for the earlier judgement, too.
    const calm = minute < next ? null : beginsWave(minute, known.thresholds);
    next = Math.max(next, minute + 1);
    if (calm !== null) return { episode, closedAt: calm, countedTo, isRising: true };
    windowSums(counts, minute - firstMinute, input.freshFrom - firstMinute, sums);
    episode = followMinute(episode, { minute, sums, z, canBeNew, ...known });
    if (episode !== null && isOver(episode, minute, quietFrom))
      return { episode: endEpisode(episode, sums), closedAt: minute + 1, countedTo, isRising: false };
  }
  const known = running === undefined ? undefined : input.thresholdsOf(Math.floor(running / 60));
  if (running === undefined || known === undefined)
    return { episode, closedAt: null, countedTo, isRising: false };
  const calm = beginsWave(running, known.thresholds);
  if (calm !== null) return { episode, closedAt: calm, countedTo, isRising: true };
  windowSums(counts, running - firstMinute, input.freshFrom - firstMinute, sums);
  const countOf = (minute: number) => (minute < input.freshFrom ? 0 : (counts[minute - firstMinute] ?? 0));
  const growth = countOf(running) + countOf(running - 1) - countOf(running - 2) - countOf(running - 3);
  const isRising = known.thresholds.threshold.some((threshold, i) => (sums[i] ?? 0) + growth >= threshold);
  const grown = followMinute(episode, { minute: running, sums, z, canBeNew, ...known });
  // The rest of the minute may make a spike of what looks like a new rule now.
  const isNews =
    episode === null ? grown?.kind === "spike" : grown !== null && isGraver(grown.severity, episode.severity);
  return isNews
    ? { episode: grown, closedAt: null, countedTo: running + 1, isRising }
    : { episode, closedAt: null, countedTo, isRising };
}

/**
 * Returns the events of the last 3, 15 and 60 minutes up to and including the one at `index`. Minutes before `from`
 * are left out, because an earlier spike of the series has already reported them.
 */
export function windowSums(
  counts: ArrayLike<number>,
  index: number,
  from = 0,
  out: Int32Array = new Int32Array(WINDOW_COUNT),
): Int32Array {
  let sum = 0;
  let next = index;
  for (const [i, width] of WINDOWS.entries()) {
    for (const oldest = Math.max(index - width + 1, from, 0); next >= oldest; next -= 1) {
      sum += counts[next] ?? 0;
    }
    out[i] = sum;
  }
  return out;
}
