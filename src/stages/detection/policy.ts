import type { RulePrior } from "./thresholds/rule-prior.ts";

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
