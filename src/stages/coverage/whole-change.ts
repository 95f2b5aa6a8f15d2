import type { ComparedHour } from "./compare-counts.ts";

/** An answer that shows none of at least so many known events is not recognised as the zone's. */
export const KNOWN_EVENTS = 5;

/**
 * Returns whether counts differ in most hours at once, in a way that neither late nor withdrawn events explain: an hour
 * has both more and fewer events of some rules than are stored, or fewer than half of its events.
 */
export function isWholeCountsChange(hours: readonly ComparedHour[]): boolean {
  const eventful = hours.filter(({ storedCount }) => storedCount > 0);
  const broken = eventful.filter(isBroken);
  return broken.length >= 2 && broken.length >= eventful.length / 2;
}

function isBroken({ differing, storedCount }: ComparedHour): boolean {
  let [above, below] = [0, 0];
  for (const cell of differing) {
    const difference = cell.upstreamCount - cell.storedCount;
    if (difference > 0) above += difference;
    else below -= difference;
  }
  return below > 0 && (above > 0 || below > storedCount / 2);
}
