import { WINDOWS } from "#model/kinds.ts";

/**
 * The expectation for a rule without history, from the platform's own daily counts. Per window (3, 15, 60 minutes);
 * logarithms are natural, of 1 + count.
 */
export interface RulePrior {
  /** Expected logarithm of an hour's peak. */
  readonly level: readonly number[];
  /** Variance of that logarithm from day to day. */
  readonly variance: readonly number[];
  /** Events of an hour, on average. */
  readonly eventsPerHour: number;
}

/**
 * Returns the prior from the totals of days in any order, or null without any event. A day's events are taken as
 * spread evenly: m = total / 24 * w / 60 in a window, and the hour's largest window reaches m + 2 * sqrt(m).
 */
export function toRulePrior(dailyTotals: readonly number[]): RulePrior | null {
  if (!dailyTotals.some((total) => total > 0)) return null;
  const peaks = WINDOWS.map((minutes) =>
    dailyTotals.map((total) => {
      const usual = (total / 24) * (minutes / 60);
      return Math.log1p(usual + 2 * Math.sqrt(usual));
    }),
  );
  const level = peaks.map(mean);
  const variance = peaks.map((logs, i) => mean(logs.map((log) => (log - (level[i] as number)) ** 2)));
  return { level, variance, eventsPerHour: mean(dailyTotals) / 24 };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
