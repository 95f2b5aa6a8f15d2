import type { Episode, Severity } from "./episode.ts";

const STEPS: readonly Severity[] = ["warning", "error", "critical"];
/** Spikes that opened within so many minutes of each other rise together. */
const TOGETHER_MINUTES = 15;

/** What of a spike tells whether it rose with another; minutes since the epoch. */
export type Rising = Pick<Episode, "openedAt" | "kind">;

/** How many of the others rise in the same minutes; new rules are no companions and have none. */
export function countCompanions(one: Rising, others: Iterable<Rising>): number {
  if (one.kind !== "spike") return 0;
  let count = 0;
  for (const other of others) {
    const isTogether = Math.abs(other.openedAt - one.openedAt) <= TOGETHER_MINUTES;
    if (other.kind === "spike" && isTogether) count += 1;
  }
  return count;
}

/** One step graver where other rules of the zone rose too. Never less grave than it was. */
export function raiseSeverity(graded: Severity, companions: number, before: Severity = "warning"): Severity {
  const step = STEPS.indexOf(graded) + (companions > 0 ? 1 : 0);
  return STEPS[Math.min(Math.max(step, STEPS.indexOf(before)), STEPS.length - 1)] as Severity;
}
