import { profileHours, type WeekOfHours } from "./hour-profile.ts";

/** Long enough to hold events of a quiet zone, and short enough to see its silence soon. */
export const LEVEL_MINUTES = 30;

/** A zone's hours, and its newest minutes. */
export interface ZoneCounts extends WeekOfHours {
  /** The end of the known minutes, since the epoch. */
  readonly through: number;
  /** The events of a minute of the last `LEVEL_MINUTES` before `through`. */
  readonly countAt: (minute: number) => number;
}

/** A rule without events for some minutes, of which `usual` were to be expected in the hour. */
interface QuietHour {
  readonly hour: number;
  readonly usual: number;
  readonly quietMinutes: number;
}

/** Returns the zone's events in an hour as a share of what is usual without this rule, at most 1. */
export type LevelOf = (quiet: QuietHour) => number;

/**
 * Returns the function for a zone. A silent rule has no part in the zone's events, so it has none in what is usual. Of
 * the open hour the last half hour counts, because only what is over is known; of a rule that is quiet for less, only the
 * minutes since, because a zone that falls silent does so with all of its rules at once.
 */
export function createZoneLevel({ through, countAt, ...week }: ZoneCounts): LevelOf {
  const { expectedAt } = profileHours(week);
  const openHour = Math.floor(through / 60);
  return ({ hour, usual, quietMinutes }) => {
    let [count, expected] = [week.countOf(hour), expectedAt(hour)];
    if (hour === openHour) {
      const from = through - Math.min(quietMinutes, LEVEL_MINUTES);
      [count, expected] = [0, 0];
      for (let minute = from; minute < through; minute += 1) {
        count += countAt(minute);
        expected += expectedAt(Math.floor(minute / 60)) / 60;
      }
      [count, expected] = [(count * 60) / (through - from), (expected * 60) / (through - from)];
    }
    return expected > usual ? Math.min(1, count / (expected - usual)) : 0;
  };
}
