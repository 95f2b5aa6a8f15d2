import type { CoveredHour } from "../coverage/covered-hour.ts";
import { HOUR_MS, horizonAt, startOfHour } from "../coverage/horizon.ts";

export type DrawnHour = Pick<CoveredHour, "startsAt" | "state" | "searchedThrough">;

/** One character per hour that the platform still has, oldest first. */
export function drawHours(now: number, hours: readonly DrawnHour[]): string {
  const known = new Map(hours.map((hour) => [hour.startsAt, hour]));
  let strip = "";
  for (let hour = startOfHour(horizonAt(now)); hour <= now; hour += HOUR_MS)
    strip += draw(hour, known.get(hour));
  return strip;
}

function draw(startsAt: number, hour: DrawnHour | undefined): string {
  if (hour?.state === "sealed") return "█";
  if (hour?.state === "gap") return "!";
  const through = hour?.searchedThrough ?? null;
  if (through === null) return "·";
  return through >= startsAt + HOUR_MS ? "▒" : "░";
}
