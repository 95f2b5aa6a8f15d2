import { WINDOW_COUNT } from "../thresholds/windows.ts";
import type { UsualOf } from "./distinct-members.ts";

export const USUAL_DAYS = 7;
/** With fewer days than this an address has no usual count. */
export const ENOUGH_DAYS = 2;

/** The largest counts of one address on one UTC day (since the epoch), by window. */
export type DayPeaks = ReadonlyMap<number, ArrayLike<number>>;

/**
 * Returns what is usual for an address on a day: the second largest of its daily peaks of the seven days before, by
 * window. So a monitor or a shared address is known after two days, and one attack does not become usual.
 */
export function usualOnDay(peaks: DayPeaks, day: number): Int32Array | undefined {
  const known = [...peaks].filter(([on]) => on < day && on >= day - USUAL_DAYS).map(([, counts]) => counts);
  if (known.length < ENOUGH_DAYS) return undefined;
  return Int32Array.from({ length: WINDOW_COUNT }, (_, i) => {
    return known.map((counts) => counts[i] as number).sort((a, b) => b - a)[ENOUGH_DAYS - 1] as number;
  });
}

/** The daily peaks of a zone's addresses. */
export interface UsualRules {
  readonly note: (address: string, day: number, counts: ArrayLike<number>) => void;
  readonly usualOn: (day: number) => UsualOf;
}

export function createUsualRules(): UsualRules {
  const peaks = new Map<string, Map<number, Int32Array>>();
  let computed = { day: -1, usual: new Map<string, Int32Array>() };

  // Days that are too old for every later day are forgotten; a recount may ask for a day of the week before.
  function computeUsual(day: number) {
    const usual = new Map<string, Int32Array>();
    for (const [address, days] of peaks) {
      for (const on of days.keys()) if (on < day - 2 * USUAL_DAYS) days.delete(on);
      if (days.size === 0) peaks.delete(address);
      const found = usualOnDay(days, day);
      if (found !== undefined) usual.set(address, found);
    }
    return { day, usual };
  }

  return {
    note(address, day, counts) {
      const days = peaks.get(address) ?? new Map<number, Int32Array>();
      const largest = days.get(day) ?? new Int32Array(WINDOW_COUNT);
      for (let i = 0; i < WINDOW_COUNT; i += 1)
        largest[i] = Math.max(largest[i] as number, counts[i] as number);
      days.set(day, largest);
      peaks.set(address, days);
    },
    usualOn(day) {
      if (computed.day !== day) computed = computeUsual(day);
      const { usual } = computed;
      return (address) => usual.get(address);
    },
  };
}
