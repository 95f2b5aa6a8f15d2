import type { Episode, SpikeSeverity } from "./episode.ts";

const STEPS: readonly SpikeSeverity[] = ["warning", "error", "critical"];
/** Spikes that opened within so many minutes of each other rise together. */
const TOGETHER_MINUTES = 15;

/** What of a spike tells whether it rose with another; minutes since the epoch. */
export type Rising = Pick<Episode, "openedAt" | "kind">;

/**
 * For each of a zone's spikes, how many of the others rise in the same minutes; new rules are no company and have none.
 * Quick for thousands.
 */
export function createCompany(all: readonly Rising[]): (one: Rising) => number {
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

/** One step graver where other rules of the zone rose too. Never less grave than it was. */
export function raiseSeverity(
  graded: SpikeSeverity,
  companions: number,
  before: SpikeSeverity = "warning",
): SpikeSeverity {
  const step = STEPS.indexOf(graded) + (companions > 0 ? 1 : 0);
  return STEPS[Math.min(Math.max(step, STEPS.indexOf(before)), STEPS.length - 1)] as SpikeSeverity;
}
