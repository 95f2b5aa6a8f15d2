import { SPIKE_SEVERITIES, type SpikeSeverity } from "#model/kinds.ts";
import type { Episode } from "./episode.ts";

/** Spikes that opened within this many minutes of each other rise together. */
const TOGETHER_MINUTES = 15;

/** The members of a spike that decide whether it rose with another; minutes since the epoch. */
export type Rising = Pick<Episode, "openedAt" | "kind">;

/**
 * Returns a function that counts, for each of a zone's spikes, the others that rise in the same minutes. New rules do
 * not count and have a count of 0. Fast for thousands of spikes.
 */
export function createRiseCounter(all: readonly Rising[]): (one: Rising) => number {
  const openings = new Map<number, number>();
  for (const { openedAt, kind } of all)
    if (kind === "spike") openings.set(openedAt, (openings.get(openedAt) ?? 0) + 1);
  return ({ openedAt, kind }) => {
    if (kind !== "spike") return 0;
    let count = -1;
    for (let at = openedAt - TOGETHER_MINUTES; at <= openedAt + TOGETHER_MINUTES; at += 1)
      count += openings.get(at) ?? 0;
    return count;
  };
}

/** Raises the severity by one step if other rules of the zone rose too. Never lowers it. */
export function raiseSeverity(
  graded: SpikeSeverity,
  companions: number,
  before: SpikeSeverity = "warning",
): SpikeSeverity {
  const step = SPIKE_SEVERITIES.indexOf(graded) + (companions > 0 ? 1 : 0);
  return SPIKE_SEVERITIES[
    Math.min(Math.max(step, SPIKE_SEVERITIES.indexOf(before)), SPIKE_SEVERITIES.length - 1)
  ] as SpikeSeverity;
}
