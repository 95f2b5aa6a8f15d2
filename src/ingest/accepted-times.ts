import { DAY_MS } from "../lib/units.ts";
import type { AcceptedTimes } from "./read-entries.ts";

/**
 * The platform shows three days and its clock may be off; anything far outside is a broken time. The bound keeps such
 * an entry from making a partition of its own.
 */
export function acceptedAt(now: number): AcceptedTimes {
  return { from: now - 10 * DAY_MS, to: now + 2 * DAY_MS };
}
