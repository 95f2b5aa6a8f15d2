import { HOUR_MS } from "#lib/units.ts";
import type { CoveredHour } from "#model/covered-hour.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";

interface Zone {
  /** Start of the zone's first known hour. The platform had begun to forget this hour when the zone was first watched. */
  readonly firstHour?: number | undefined;
  readonly keptMs?: number;
}

/**
 * Returns the hours until the platform begins to forget the oldest ended undecided hour; 0 once it has begun to, null
 * when every hour is sealed or a gap. An hour without a row is undecided. Times in epoch ms.
 */
export function hoursToLoss(
  now: number,
  hours: readonly Pick<CoveredHour, "startsAt" | "state">[],
  { firstHour, keptMs }: Zone = {},
): number | null {
  const states = new Map(hours.map(({ startsAt, state }) => [startsAt, state]));
  const horizon = horizonAt(now, keptMs);
  for (let hour = startOfHour(horizon); hour + HOUR_MS <= now; hour += HOUR_MS) {
    // Nobody could have copied the beginning of the first hour.
    const isCut = hour === firstHour && hour < horizon;
    if (!isCut && (states.get(hour) ?? "open") === "open") return Math.max(0, hour - horizon) / HOUR_MS;
  }
  return null;
}
