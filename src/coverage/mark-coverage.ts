import { HOUR_MS } from "../lib/units.ts";
import { startOfHour } from "../model/horizon.ts";
import type { Standing, StandingHour } from "./hour-status.ts";

/** The worst first. */
const WORST_FIRST: readonly Standing[] = ["gap", "unwatched", "open", "not yet", "searched", "sealed"];

/**
 * How far the events of [startsAt, endsAt) are known to be complete: the worst of its hours. A part of an open hour that
 * the search has come past counts as searched; an hour before the first known one as unwatched.
 */
export function coverageOf(
  hours: ReadonlyMap<number, StandingHour>,
  { startsAt, endsAt }: { startsAt: number; endsAt: number },
  now: number,
): Standing {
  let worst = WORST_FIRST.length - 1;
  for (let hour = startOfHour(startsAt); hour < endsAt; hour += HOUR_MS) {
    const end = Math.min(endsAt, hour + HOUR_MS);
    const standing = standingOfPart(hours.get(hour), Math.max(startsAt, hour), end, now);
    worst = Math.min(worst, WORST_FIRST.indexOf(standing));
  }
  return WORST_FIRST[worst] ?? "unwatched";
}

function standingOfPart(hour: StandingHour | undefined, from: number, to: number, now: number): Standing {
  if (from > now) return "not yet";
  if (hour === undefined) return "unwatched";
  return hour.standing === "open" && (hour.searchedThrough ?? 0) >= to ? "searched" : hour.standing;
}
