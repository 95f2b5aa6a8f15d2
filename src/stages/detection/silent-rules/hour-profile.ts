export const HISTORY_HOURS = 168;

/** The events of a rule or a zone in the hours of a week. Unknown hours are left out of everything. */
export interface WeekOfHours {
  /** The last of the hours, since the epoch. */
  readonly lastHour: number;
  readonly countOf: (hour: number) => number;
  readonly isUnknownHour: (hour: number) => boolean;
}

/** Profile of each hour of the day by a week, from the first hour with events on. */
export interface HourProfile {
  /** Events to expect in this hour. */
  readonly expectedAt: (hour: number) => number;
  /** Mean and variance of the hourly counts, and the number of known hours. */
  readonly mean: number;
  readonly variance: number;
  readonly known: number;
}

/**
 * Expects in an hour the mean of its time of day, and to half of the two hours beside it, so that no event that came at
 * five past is missed at five to.
 */
export function profileHours({ lastHour, countOf, isUnknownHour }: WeekOfHours): HourProfile {
  const sums = new Float64Array(24);
  const weights = new Float64Array(24);
  const add = (hour: number, count: number, weight: number) => {
    const at = ((hour % 24) + 24) % 24;
    sums[at] = (sums[at] as number) + count * weight;
    weights[at] = (weights[at] as number) + weight;
  };
  let [total, squares, known] = [0, 0, 0];
  for (let hour = lastHour - HISTORY_HOURS + 1; hour <= lastHour; hour += 1) {
    if (isUnknownHour(hour)) continue;
    const count = countOf(hour);
    if (total + count === 0) continue;
    add(hour, count, 1);
    add(hour - 1, count, 0.5);
    add(hour + 1, count, 0.5);
    total += count;
    squares += count * count;
    known += 1;
  }
  const mean = known === 0 ? 0 : total / known;
  const variance = known === 0 ? 0 : squares / known - mean * mean;
  const expectedAt = (hour: number) => {
    const at = ((hour % 24) + 24) % 24;
    const weight = weights[at] as number;
    return weight === 0 ? 0 : (sums[at] as number) / weight;
  };
  return { expectedAt, mean, variance, known };
}
