import type { GradedBy, SpikeSeverity } from "#model/kinds.ts";
import { gradeSeverity } from "./episode.ts";
import { raiseSeverity } from "./raise-severity.ts";

/** A spike needs this many different addresses to page anyone. */
const MANY_ADDRESSES = 12;
/** A spike needs a score this far above z to page anyone. */
const FAR_ABOVE_Z = 3;

/**
 * What decided the severity of a rule's spike: the number of addresses kept it low, its distance from the usual kept
 * it low, or both were high enough.
 */

export interface SpikeStrength {
  readonly score: number;
  readonly z: number;
  /** Other rules of the zone that rose too. */
  readonly companions: number;
  /** Different addresses in the window of the spike; null if they are not known. */
  readonly addresses: number | null;
  /** The severity of the spike so far, which is never lowered. */
  readonly before: SpikeSeverity | undefined;
}

/** Returns whether the severity depends on the number of addresses, which is expensive to count. */
export function isGradedByAddresses({ score, z, companions }: Omit<SpikeStrength, "addresses" | "before">) {
  return score >= z + FAR_ABOVE_Z && raiseSeverity(gradeSeverity(score, z), companions) !== "warning";
}

/**
 * Returns the severity of a rule's spike. One that comes from few addresses, or is not far above the usual, pages
 * nobody: one broken client that repeats a request is one address, and a rise of all rules together is a matter of
 * the source series.
 */
export function gradeSpike(strength: SpikeStrength): { severity: SpikeSeverity; gradedBy: GradedBy } {
  const { score, z, companions, addresses, before } = strength;
  const raised = raiseSeverity(gradeSeverity(score, z), companions);
  const gradedBy = !isGradedByAddresses(strength)
    ? "score"
    : addresses !== null && addresses < MANY_ADDRESSES
      ? "addresses"
      : "both";
  return { severity: raiseSeverity(gradedBy === "both" ? raised : "warning", 0, before), gradedBy };
}
