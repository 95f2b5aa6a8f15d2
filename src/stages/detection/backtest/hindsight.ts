import { WINDOWS } from "#model/kinds.ts";
import type { Episode } from "../episode.ts";
import type { SpikePolicy } from "../policy.ts";
import { passMinutes, type SeriesWatch } from "../series-watch.ts";
import { computeThresholds } from "../thresholds/thresholds.ts";

/** The hour after an episode may still count its events in the longest window. */
const AFTERMATH_HOURS = 2;
/** The aftermath, the day after it, and the two hours that thresholds leave out. */
const DUE_HOURS = AFTERMATH_HOURS + 24 + 2;

export interface Hindsight {
  /** Judges a closed episode again once the day after it is known. */
  readonly expect: (episode: Episode) => void;
  /** Call before a minute is taken. */
  readonly reach: (minute: number, onClosed: (episode: Episode) => void) => void;
  /**
   * Returns whether the day after the episode shows that it was everyday traffic. With less than a day, judges what
   * there is.
   */
  readonly isEveryday: (episode: Episode, endMinute: number) => boolean;
}

/**
 * Returns a judge for episodes at the beginning of a record, where no series has a history: the following day
 * replaces the history. A burst that stays the only one was a spike; traffic that continues as it began was none.
 */
export function createHindsight(watch: SeriesWatch, policy: SpikePolicy): Hindsight {
  let due: Episode[] = [];
  const everyday = new Set<number>();

  function judge(episode: Episode, hour: number): boolean {
    const from = hourOf(episode) + AFTERMATH_HOURS;
    const isUnknownHour = (h: number) => h < from || policy.isUnknownHour?.(h) === true;
    const { threshold } = computeThresholds(watch.history, hour, { ...policy, isUnknownHour });
    return episode.peak < (threshold[WINDOWS.indexOf(episode.windowMinutes)] as number);
  }

  return {
    expect: (episode) => void due.push(episode),
    reach(minute, onClosed) {
      for (let [first] = due; first !== undefined; [first] = due) {
        const hour = hourOf(first) + DUE_HOURS;
        if (minute < hour * 60) return;
        due = due.slice(1);
        passMinutes(watch, hour * 60, policy, onClosed);
        if (judge(first, hour)) everyday.add(first.openedAt);
      }
    },
    isEveryday(episode, endMinute) {
      if (everyday.has(episode.openedAt)) return true;
      return due.includes(episode) && judge(episode, Math.floor(endMinute / 60) + 1);
    },
  };
}

function hourOf({ lastActiveAt }: Episode): number {
  return Math.floor(lastActiveAt / 60);
}
