import { MANY_ADDRESSES } from "#model/ip-address.ts";
import type { GradedBy, SpikeSeverity } from "#model/kinds.ts";
import { gradeSeverity } from "./episode.ts";

export interface SpikeStrength {
  readonly score: number;
  readonly z: number;
  /** Different addresses in the window of the spike; null if they are not known. */
  readonly addresses: number | null;
  /** The severity of the spike so far, which is never lowered. */
  readonly before: SpikeSeverity | undefined;
}

/**
 * Returns the severity of a rule's spike, and the facts that decided it. A rule alone warns. It pages only if it is far
 * above the usual and many addresses send it: one broken client that repeats a request is one address, and who attacks
 * many rules is found by the source series.
 */
export function gradeSpike({ score, z, addresses, before }: SpikeStrength): {
  severity: SpikeSeverity;
  gradedBy: GradedBy;
} {
  const isFar = gradeSeverity(score, z) === "critical";
  const isFew = addresses !== null && addresses < MANY_ADDRESSES;
  const gradedBy = isFar ? (isFew ? "addresses" : "both") : "score";
  return { severity: before === "critical" || gradedBy === "both" ? "critical" : "warning", gradedBy };
}
