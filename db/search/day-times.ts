import { unpackVarints } from "./varints.ts";

/** When each event of a day was, ms from midnight, ascending. */
export type DayTimes = Int32Array;

/** Reads the times of a day that `db/search/tally-day.ts` has packed. */
export function unpackTimes(times: Buffer): DayTimes {
  const gaps = unpackVarints(times);
  const moments = new Int32Array(gaps.length);
  let ms = 0;
  for (let event = 0; event < gaps.length; event++) moments[event] = ms += gaps[event] as number;
  return moments;
}

/** How many of the times are before `ms`. */
export function countBefore(times: DayTimes, ms: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) < ms) low = middle + 1;
    else high = middle;
  }
  return low;
}
