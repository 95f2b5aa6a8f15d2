import type { Queryable } from "#db/client.ts";
import { readKnownIds } from "#db/coverage/hour-contents.ts";
import { KNOWN_EVENTS } from "#stages/coverage/whole-change.ts";

/** Most answers show one of the first events of their time, so that no more have to be read. */
const SAMPLE = 50;

/** The ids that an answer shows, and the time that it covers; epoch ms, both ends included. */
export interface Answer {
  readonly fromMs: number;
  readonly toMs: number;
  /** Only events that the search has shown are compared. */
  readonly isResolved: boolean;
  readonly shows: (logId: string) => boolean;
}

/**
 * `known`: the answer shows an event that is stored. `unknown`: it shows none of at least five, so the platform answers
 * nothing or another zone's events. `neutral`: too few events are stored in its time.
 */
export type Recognition = "known" | "unknown" | "neutral";

export async function recogniseAnswer(
  db: Queryable,
  zoneId: number,
  { isResolved, shows, ...span }: Answer,
): Promise<Recognition> {
  for (const limit of [SAMPLE, null]) {
    const ids = await readKnownIds(db, zoneId, span, { isResolved, limit });
    if (ids.some(shows)) return "known";
    if (ids.length < (limit ?? Number.POSITIVE_INFINITY))
      return ids.length >= KNOWN_EVENTS ? "unknown" : "neutral";
  }
  return "neutral";
}
