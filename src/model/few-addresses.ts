import type { GradedBy, Severity } from "./kinds.ts";

/** A rule's spike of which fewer addresses send most is listed and notifies nobody, unless it pages. */
export const FEW_ADDRESSES = 3;

/** A rule's spike needs this many different addresses to page anyone. */
export const MANY_ADDRESSES = 12;

interface SentSpike {
  readonly severity: Severity;
  readonly addresses?: number | null | undefined;
  readonly mainSenders?: number | null | undefined;
  readonly gradedBy?: GradedBy | null | undefined;
}

/** Returns whether few addresses send a spike, or few send most of one that is not far above the usual. */
export function isSentByFew({ severity, addresses, mainSenders, gradedBy }: SentSpike, few: number): boolean {
  if (severity === "critical" || addresses == null) return false;
  return addresses < few || (gradedBy === "score" && (mainSenders ?? few) < few);
}
