/** The settings of the detector, and the windows and buckets of its counts. */

import { DAY_MS } from "#lib/units.ts";
import { digest } from "#model/fingerprint.ts";
import { type BucketWidth, type SourceMode, WINDOWS } from "#model/kinds.ts";
import type { KnownSource } from "#model/known-source.ts";
import { matchesRule } from "#model/subject.ts";
import type { RulePrior } from "./thresholds/hour-history.ts";

export interface Sensitivity {
  /** The score from which a count is a spike. */
  readonly z: number;
  /** The least number of events of a window that can be a spike. */
  readonly floor: number;
}

export interface Detection extends Sensitivity {
  readonly sources: SourceMode;
  /** Whether DNS is asked about addresses that claim to be a search engine's crawler. */
  readonly verifyCrawlers: boolean;
  /** The known sources of the configuration file. Those that `longwatch known` adds are in the database. */
  readonly knownSources: readonly KnownSource[];
  /** Only the first matching override applies. It may leave a setting out. */
  readonly overrides: readonly (Partial<Sensitivity> & {
    readonly zone?: readonly number[] | undefined;
    readonly rule?: readonly string[] | undefined;
  })[];
}

/** Returns the sensitivity for one series. */
export function sensitivityOf(detection: Detection, zoneId: number, ruleId: string): Sensitivity {
  const { z, floor, overrides } = detection;
  const found = overrides.find(
    ({ zone, rule }) =>
      (zone === undefined || zone.includes(zoneId)) &&
      (rule === undefined || rule.some((pattern) => matchesRule(pattern, ruleId))),
  );
  return { z: found?.z ?? z, floor: found?.floor ?? floor };
}

/** Raised when the detectors judge the same events in another way than before. */
const VERSION = 1;
/** Stands for the settings of hours that were not compared with anything, because a zone's first day is its history. */
export const TOO_LITTLE_HISTORY = "too little history";

/** Returns a short name of the settings, and of a zone's known sources by their fingerprint. */
export function nameSettings({ z, floor, overrides, sources }: Detection, known: string): string {
  return digest([VERSION, z, floor, sources, known, JSON.stringify(overrides)]).slice(0, 12);
}

/** Returns the lowest of all floors: below it no series can have a spike. */
export function lowestFloor({ floor, overrides }: Detection): number {
  return Math.min(floor, ...overrides.map((override) => override.floor ?? floor));
}

/** A window below this count is never a spike, however quiet the rule is. The configuration may set another floor. */
export const FLOOR = 10;

export const DEFAULT_Z = 3.5;

/** The settings for judging one series. */
export interface SpikePolicy {
  /** The main setting: 3 is sensitive, 3.5 normal, 4.5 for a pager. */
  readonly z: number;
  /** The floor of every window. Default: FLOOR. */
  readonly floor?: number;
  /**
   * Returns whether some events of the hour (since the epoch) may be missing. Such hours are removed from the
   * history, because they would otherwise count as zeros.
   */
  readonly isUnknownHour?: (hour: number) => boolean;
  /**
   * Leaves out the record and the clumps of a rule that is mostly silent. They are for counts of events, not of
   * sources.
   */
  readonly isSteady?: boolean;
  /** Replaces the history while there is less than a day of it. */
  readonly prior?: RulePrior | null;
}

export const WINDOW_COUNT = WINDOWS.length;
export const LONGEST_WINDOW = 60;

/** The most days of stored counts that a replay of the detector covers. */
export const REPLAYED_DAYS = 60;
/** A replay reads the history of its first minute, too, which is a week and two hours. */
const HISTORY_DAYS = 8;

/** Returns the moment before which counts by the minute of archive days are deleted. Counts by the hour and day stay. */
export function minutesFrom(now: number): number {
  return now - (REPLAYED_DAYS + HISTORY_DAYS + 1) * DAY_MS;
}

/**
 * Returns the start, in epoch ms, of the half-open bucket [start, start + width) that holds a time. UTC, aligned to
 * the epoch.
 */
export function bucketStart(timeMs: number, widthSeconds: BucketWidth): number {
  const widthMs = widthSeconds * 1_000;
  return Math.floor(timeMs / widthMs) * widthMs;
}

/** Returns the first time, in epoch ms, after the bucket of `timeMs`. */
export function bucketEnd(timeMs: number, widthSeconds: BucketWidth): number {
  return bucketStart(timeMs, widthSeconds) + widthSeconds * 1_000;
}

/** Returns the starts of the buckets that overlap [fromMs, toMs), oldest first. */
export function* bucketStarts(fromMs: number, toMs: number, widthSeconds: BucketWidth): Generator<number> {
  for (let start = bucketStart(fromMs, widthSeconds); start < toMs; start += widthSeconds * 1_000) {
    if (fromMs < toMs) yield start;
  }
}
