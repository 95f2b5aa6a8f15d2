import { DAY_MS } from "#lib/units.ts";
import type { AcceptedTimes } from "./read-entries.ts";

/**
 * Returns the span of times that ingest accepts. The platform shows three days and its clock may be off; a time far
 * outside that is wrong. The limit keeps such an entry from creating a partition of its own.
 */
export function acceptedAt(now: number): AcceptedTimes {
  return { from: now - 10 * DAY_MS, to: now + 2 * DAY_MS };
}
