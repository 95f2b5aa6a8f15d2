import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { CoveredHour } from "#model/covered-hour.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";

/** While the platform answers, the newest minutes are searched at least this often, however much history is left. */
const FRESH_MS = 5 * MINUTE_MS;

export interface CopyProgress {
  /** Ended hours that the platform still shows, without the one that has just ended. */
  readonly hours: number;
  /** Hours that were read to their end. */
  readonly done: number;
}

/**
 * Returns how far the copy of the platform's history has come. Null if every hour was read, and while the newest minutes
 * are not read: then the platform does not answer, and nothing is copied. Times in epoch ms.
 */
export function copyProgress(
  now: number,
  known: readonly Pick<CoveredHour, "startsAt" | "state" | "searchedThrough">[],
  keptMs?: number,
): CopyProgress | null {
  const newest = Math.max(0, ...known.map(({ searchedThrough }) => searchedThrough ?? 0));
  if (now - newest > FRESH_MS) return null;
  const read = new Set(
    known
      .filter(
        ({ startsAt, state, searchedThrough }) =>
          state !== "open" || (searchedThrough ?? 0) >= startsAt + HOUR_MS,
      )
      .map(({ startsAt }) => startsAt),
  );
  let [hours, done] = [0, 0];
  for (let hour = startOfHour(horizonAt(now, keptMs)); hour < startOfHour(now) - HOUR_MS; hour += HOUR_MS) {
    hours += 1;
    if (read.has(hour)) done += 1;
  }
  return done === hours ? null : { hours, done };
}
