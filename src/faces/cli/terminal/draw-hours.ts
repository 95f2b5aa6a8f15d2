import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import { cellOf, type DrawnHour } from "#operations/coverage/draw-days.ts";

/** Returns one character per hour that the platform still has, oldest first, as in `longwatch coverage`. */
export function drawHours(now: number, hours: readonly DrawnHour[]): string {
  const known = new Map(hours.map(({ startsAt, status }) => [startsAt, status]));
  let strip = "";
  for (let hour = startOfHour(horizonAt(now)); hour <= now; hour += HOUR_MS)
    strip += cellOf(known.get(hour) ?? "not yet");
  return strip;
}
