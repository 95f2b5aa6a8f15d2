import { HOUR_MS, horizonAt, startOfHour } from "../coverage/horizon.ts";
import type { SearchedHour } from "../coverage/plan-search.ts";

/** One character per hour that the platform still has, oldest first. */
export function drawHours(now: number, hours: readonly SearchedHour[]): string {
  const searched = new Map(hours.map(({ startsAt, searchedThrough }) => [startsAt, searchedThrough]));
  let strip = "";
  for (let hour = startOfHour(horizonAt(now)); hour <= now; hour += HOUR_MS) {
    const through = searched.get(hour) ?? null;
    if (through === null) strip += "·";
    else strip += through >= hour + HOUR_MS ? "█" : "▒";
  }
  return strip;
}
