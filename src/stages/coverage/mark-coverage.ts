import { HOUR_MS } from "#lib/units.ts";
import { startOfHour } from "#model/horizon.ts";
import type { HourStatus } from "#model/kinds.ts";
import type { AssessedHour } from "./hour-status.ts";

/** Statuses, worst first. */
const WORST_FIRST: readonly HourStatus[] = ["gap", "unwatched", "open", "not yet", "searched", "sealed"];

/**
 * Returns the worst status of the hours of [startsAt, endsAt). A part of an open hour that the search has passed
 * counts as searched. An hour before the first known one counts as unwatched.
 */
export function coverageOf(
  hours: ReadonlyMap<number, AssessedHour>,
  { startsAt, endsAt }: { startsAt: number; endsAt: number },
  now: number,
): HourStatus {
  let worst = WORST_FIRST.length - 1;
  for (let hour = startOfHour(startsAt); hour < endsAt; hour += HOUR_MS) {
    const end = Math.min(endsAt, hour + HOUR_MS);
    const status = statusOfPart(hours.get(hour), Math.max(startsAt, hour), end, now);
    worst = Math.min(worst, WORST_FIRST.indexOf(status));
  }
  return WORST_FIRST[worst] ?? "unwatched";
}

function statusOfPart(hour: AssessedHour | undefined, from: number, to: number, now: number): HourStatus {
  if (from > now) return "not yet";
  if (hour === undefined) return "unwatched";
  return hour.status === "open" && (hour.searchedThrough ?? 0) >= to ? "searched" : hour.status;
}
