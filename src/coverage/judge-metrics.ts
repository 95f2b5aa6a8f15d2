import { DAY_MS, HOUR_MS } from "../lib/units.ts";
import type { CoveredHour } from "../model/covered-hour.ts";

/** The platform's and the stored count of one rule on one UTC day. */
export interface DayOfRule {
  /** `yyyy-MM-dd`. */
  readonly day: string;
  readonly ruleId: string;
  /** The platform's own count; null if it was not fetched. */
  readonly platform: number | null;
  /** When the platform returned the count, epoch ms. */
  readonly fetchedAt: number | null;
  readonly stored: number;
}

/** A rule with a higher count by the platform on a day than is stored. */
export interface MetricAbove {
  readonly day: string;
  readonly ruleId: string;
  readonly platform: number;
  readonly stored: number;
  readonly fetchedAt: number;
}

/** Returns when a count of the metrics ends: with its day, or when the platform was asked; epoch ms. */
function endOf({ day, fetchedAt }: Pick<DayOfRule, "day" | "fetchedAt">): number {
  return Math.min(Date.parse(day) + DAY_MS, fetchedAt ?? 0);
}

/**
 * Returns whether every hour of the day that began before the count ends was read that far; `hours` are those of one
 * zone.
 */
export function isReadCompletely(row: DayOfRule, hours: readonly CoveredHour[]): boolean {
  const [dayStart, end] = [Date.parse(row.day), endOf(row)];
  const counted = hours.filter(({ startsAt }) => startsAt >= dayStart && startsAt < end);
  if (counted.length < Math.ceil((end - dayStart) / HOUR_MS)) return false;
  return counted.every(({ startsAt, state, searchedThrough }) => {
    if (state === "gap") return false;
    return state === "sealed" || (searchedThrough ?? 0) >= Math.min(startsAt + HOUR_MS, end);
  });
}

/**
 * Compares the platform's daily metrics with the stored events for days that are read completely. Returns the counts
 * above the stored ones, and the days (epoch ms of their start) on which every rule agrees. Metrics may lag, so lower
 * counts are ignored.
 */
export function judgeMetrics(
  rows: readonly DayOfRule[],
  { settleMs }: { settleMs: number },
): { above: MetricAbove[]; confirmedDays: Set<number> } {
  const above = rows.flatMap(({ platform, fetchedAt, ...row }) =>
    platform !== null && fetchedAt !== null && platform > row.stored ? [{ ...row, platform, fetchedAt }] : [],
  );
  const confirmed = [...Map.groupBy(rows, ({ day }) => Date.parse(day))].filter(([day, rules]) => {
    const isAlike = ({ platform, fetchedAt, stored }: DayOfRule) =>
      platform === stored && (fetchedAt ?? 0) >= day + DAY_MS + settleMs;
    return rules.every(isAlike) && rules.some(({ stored }) => stored > 0);
  });
  return { above, confirmedDays: new Set(confirmed.map(([day]) => day)) };
}

/** Returns the key of a metrics count. */
export function metricKey({ day, ruleId }: Pick<MetricAbove, "day" | "ruleId">): string {
  return `${day} ${ruleId}`;
}
