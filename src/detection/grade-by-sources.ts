import type { SpikeSeverity } from "./episode.ts";

/** A spike needs this many different addresses to page anyone. */
const MANY_ADDRESSES = 12;
/** A spike needs a score this far above z to page anyone. */
const FAR_ABOVE_Z = 3;

export interface SpikeStrength {
  /** Different addresses in the window of the spike; null if they are not known. */
  readonly addresses: number | null;
  readonly score: number;
  readonly z: number;
}

/**
 * What decided the severity of a rule's spike: the number of addresses kept it low, its distance from the usual kept
 * it low, or both were high enough for the graded severity.
 */
export type GradedBy = "addresses" | "score" | "both";

/**
 * Keeps a spike that comes from few addresses, or is not far above the usual, from paging anyone. One broken client
 * that repeats a request is one address. A rise of all rules together is a matter of the source series.
 */
export function gradeBySources(
  graded: SpikeSeverity,
  { addresses, score, z }: SpikeStrength,
): { readonly severity: SpikeSeverity; readonly gradedBy: GradedBy } {
  if (addresses !== null && addresses < MANY_ADDRESSES) return { severity: "warning", gradedBy: "addresses" };
  if (score < z + FAR_ABOVE_Z) return { severity: "warning", gradedBy: "score" };
  return { severity: graded, gradedBy: "both" };
}
