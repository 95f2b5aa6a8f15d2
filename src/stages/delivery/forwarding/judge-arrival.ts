import type { Arrival } from "#model/kinds.ts";

/** The counts of a decided hour at a destination. */
export interface ArrivalCounts {
  /** Stored events that pass the destination's filter. */
  readonly stored: number;
  readonly acknowledged: number;
  readonly refused: number;
  /** The destination's own count; null if it cannot be asked. */
  readonly counted: number | null;
  /** True if the whole hour was looked at since this number of stored events was counted. */
  readonly isLookedAt: boolean;
  readonly wasSentAgain: boolean;
}

/**
 * Returns the outcome of the counts:
 *
 * | acknowledged and refused | the destination counts | before | then |
 * |---|---|---|---|
 * | not all that is stored | - | no look at the whole hour | look |
 * | not all that is stored | - | looked at | differs |
 * | all | at least what it acknowledged, or cannot be asked | - | arrived |
 * | all | less | not sent again | send-again |
 * | all | less | sent again | differs |
 *
 * A destination may count more: an event that the platform withdrew, or that was erased here, stays there.
 */
export function judgeArrival(counts: ArrivalCounts): Exclude<Arrival, "open"> | "look" | "send-again" {
  const { stored, acknowledged, refused, counted, isLookedAt, wasSentAgain } = counts;
  if (acknowledged + refused !== stored) return isLookedAt ? "differs" : "look";
  if (counted === null || counted >= acknowledged) return "arrived";
  return wasSentAgain ? "differs" : "send-again";
}
