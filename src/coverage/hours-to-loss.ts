import { HOUR_MS, horizonAt, startOfHour } from "./horizon.ts";
import type { SearchedHour } from "./plan-search.ts";

/**
 * Hours until the platform forgets the beginning of the oldest ended hour that was not searched to its end; 0 once it
 * has begun to, null when every hour was. All times in epoch ms.
 */
export function hoursToLoss(now: number, hours: readonly SearchedHour[]): number | null {
  const searched = new Map(hours.map(({ startsAt, searchedThrough }) => [startsAt, searchedThrough]));
  const horizon = horizonAt(now);
  for (let hour = startOfHour(horizon); hour + HOUR_MS <= now; hour += HOUR_MS) {
    const through = searched.get(hour) ?? hour;
    if (through < hour + HOUR_MS) return Math.max(0, through - horizon) / HOUR_MS;
  }
  return null;
}
