import type { RulePrior } from "./thresholds/rule-prior.ts";

/** No window below this count is a spike, however quiet the rule; unless the configuration says otherwise. */
export const FLOOR = 10;

export const DEFAULT_Z = 3.5;

/** How a series is judged. */
export interface SpikePolicy {
  /** The knob that matters: 3 is sensitive, 3.5 normal, 4.5 for a pager. */
  readonly z: number;
  /** Of every window; FLOOR where it is left out. */
  readonly floor?: number;
  /** Hours (since the epoch) whose events are not all known; they leave the history instead of entering as zeros. */
  readonly isUnknownHour?: (hour: number) => boolean;
  /** Stands in for the history where there is less than a day of it. */
  readonly prior?: RulePrior | null;
}
