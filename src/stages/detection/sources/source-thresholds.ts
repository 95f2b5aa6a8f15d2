import type { SourceKind } from "#model/kinds.ts";
import { advanceHours, type HourHistory, slotOf } from "../thresholds/hour-history.ts";
import { computeThresholds, type Thresholds } from "../thresholds/thresholds.ts";
import { WINDOW_COUNT } from "../thresholds/windows.ts";

/** The number of deviations above the usual from which a series fires. */
export const SOURCE_Z: Readonly<Record<SourceKind, number>> = {
  rules_per_ip: 2.5,
  ips_per_ja4: 2.75,
  ips_per_url: 3.5,
  ips_per_ua: 3.5,
  ips_per_asn: 3.5,
};

/** A series never fires below this count, however quiet the zone is. Small campaigns have some thirty addresses. */
const RULES_FLOOR = 15;
const ADDRESSES_FLOOR = 30;
/** How far the line lies above a habit, and from which count on nothing is a habit. */
const HABIT_FACTOR = 1.4;
const HABIT_CAP = 20;
const HABIT_DAYS = 7;
/** A habit is reached on three days of a week; while fewer than five days are known, on two. */
const HABIT_PLACE = 2;
const YOUNG_DAYS = 5;
const NEWEST_HOUR = 2;

export interface SourcePolicy {
  /** Added to the z of every series: the user's sensitivity. Default: 0. */
  readonly extraZ?: number;
  /** Returns whether some events of the hour may be missing. */
  readonly isUnknownHour?: (hour: number) => boolean;
}

/** Returns the count below which a series never fires. */
export function floorOf(kind: SourceKind): number {
  return kind === "rules_per_ip" ? RULES_FLOOR : ADDRESSES_FLOOR;
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
  const floor = floorOf(kind);
  const found = computeThresholds(history, hour, { z, floor, isUnknownHour, isSteady: true });
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    found.usual[i] = Math.max(Math.exp(found.level[i] as number) - 1, 0);
    if (kind !== "rules_per_ip") continue;
    found.threshold[i] = Math.max(found.threshold[i] as number, habitOf(history, hour, i));
  }
  return found;
}

/**
 * Returns thresholds with fixed lines in place of the zone's own, which has no history. In an hour, a shared address of a busy
 * office triggers as many rules as a scanner in minutes, so the line of the hour is twice as high.
 */
export function atFloor(kind: SourceKind, thresholds: Thresholds): Thresholds {
  const floor = floorOf(kind);
  return { ...thresholds, threshold: Float64Array.of(floor, floor, 2 * floor) };
}

/**
 * Returns the count that addresses reach on three days of a week and more, plus two fifths. Its cap keeps a scan that
 * comes from another address every day from becoming usual.
 */
function habitOf(history: HourHistory, hour: number, window: number): number {
  advanceHours(history, hour);
  const newest = hour - NEWEST_HOUR;
  const days: number[] = [];
  for (let end = newest; end > newest - HABIT_DAYS * 24 && end >= history.firstHour; end -= 24) {
    let peak = 0;
    for (let h = end; h > end - 24 && h >= history.firstHour; h -= 1)
      peak = Math.max(peak, history.peaks[slotOf(h) * WINDOW_COUNT + window] as number);
    days.push(peak);
  }
  const place = days.length < YOUNG_DAYS ? HABIT_PLACE - 1 : HABIT_PLACE;
  const usual = days.sort((a, b) => b - a)[place] ?? 0;
  return Math.min(HABIT_CAP, HABIT_FACTOR * usual);
}
