import { advanceHours, type HourHistory, slotOf } from "../thresholds/hour-history.ts";
import { computeThresholds, type Thresholds } from "../thresholds/thresholds.ts";
import { WINDOW_COUNT } from "../thresholds/windows.ts";
import { SOURCE_Z, type SourceKind } from "./source-kinds.ts";

/** A series never fires below this count, however quiet the zone is. */
const SOURCE_FLOOR = 15;
/** How much of what happens on three days of a week is a habit, and from which count on nothing is. */
const HABIT_FACTOR = 1.25;
const HABIT_CAP = 25;
const HABIT_DAYS = 7;
const HABIT_PLACE = 2;
const NEWEST_HOUR = 2;

export interface SourcePolicy {
  /** Added to the z of every series: the user's sensitivity. Default: 0. */
  readonly extraZ?: number;
  /** Returns whether some events of the hour may be missing. */
  readonly isUnknownHour?: (hour: number) => boolean;
}

/**
 * Returns the thresholds of a series for the minutes of an hour. It is the guard of the rules without the record and
 * the clumps, which are for events. `usual` is the expected largest count.
 */
export function computeSourceThresholds(
  kind: SourceKind,
  history: HourHistory,
  hour: number,
  { extraZ = 0, isUnknownHour = () => false }: SourcePolicy = {},
): Thresholds {
  const z = SOURCE_Z[kind] + extraZ;
  const found = computeThresholds(history, hour, { z, floor: SOURCE_FLOOR, isUnknownHour, isSteady: true });
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    found.usual[i] = Math.max(Math.exp(found.level[i] as number) - 1, 0);
    if (kind !== "rules_per_ip") continue;
    found.threshold[i] = Math.max(found.threshold[i] as number, habitOf(history, hour, i));
  }
  return found;
}

/**
 * Returns the count that addresses reach on three days of a week and more, plus a quarter. Its cap keeps a scan that
 * comes from another address every day from becoming usual.
 */
function habitOf(history: HourHistory, hour: number, window: number): number {
  advanceHours(history, hour);
  const newest = hour - NEWEST_HOUR;
  const days = Array.from({ length: HABIT_DAYS }, (_, day) => {
    let peak = 0;
    for (let h = newest - day * 24; h > newest - (day + 1) * 24; h -= 1)
      if (h >= history.firstHour)
        peak = Math.max(peak, history.peaks[slotOf(h) * WINDOW_COUNT + window] as number);
    return peak;
  });
  const usual = days.sort((a, b) => b - a)[HABIT_PLACE] as number;
  return Math.min(HABIT_CAP, HABIT_FACTOR * usual);
}
