import type { SpikeSeverity } from "./episode.ts";

/** A rule that so few addresses trigger is one client's affair. */
const FEW_ADDRESSES = 2;
/** From this many addresses on, a spike is graded by its score alone. */
const MANY_ADDRESSES = 20;

export interface SpikeSources {
  /** Different addresses in the window of the spike. */
  readonly addresses: number;
  readonly score: number;
}

/** `sources`: the number of addresses has lowered the severity. */
export type GradedBy = "sources" | "score";

/**
 * Lowers the severity of a rule's spike that comes from few addresses: a broken client that repeats one request is
 * worth a line, not a page.
 */
export function gradeBySources(
  graded: SpikeSeverity,
  { addresses }: SpikeSources,
): { severity: SpikeSeverity; decidedBy: GradedBy } {
  const cap = capOf(addresses);
  if (cap === null || ORDER.indexOf(graded) <= ORDER.indexOf(cap))
    return { severity: graded, decidedBy: "score" };
  return { severity: cap, decidedBy: "sources" };
}

const ORDER: readonly SpikeSeverity[] = ["warning", "error", "critical"];

function capOf(addresses: number): SpikeSeverity | null {
  if (addresses <= FEW_ADDRESSES) return "warning";
  return addresses < MANY_ADDRESSES ? "error" : null;
}
