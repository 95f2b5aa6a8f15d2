import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";

/** One request for advice, without the answer's text. */
export interface AdviceRow {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly askedAtMs: number;
  /** True only if there is a text to show. */
  readonly success: boolean;
  /** Null on success. Otherwise the platform's own key if it sent one, else one of this service's in capitals. */
  readonly errorKey: string | null;
}

/** The members of a spike that decide about advice. */
export interface AdvisedSpike {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly openedAtMs: number;
}

/**
 * Error key of a request that is not answered yet. The row is stored before the call. So the request counts in the
 * budget, and its row remains if the process is killed.
 */
export const ASKING = "ASKING";
/** Error key of an answer without a recommendation. */
export const NO_RECOMMENDATION = "NO_RECOMMENDATION";
/** Error key of a failure without a reason. */
export const MODEL_FAILED = "MODEL_FAILED";

/** An answer is used for every episode that opens within this time. It then stays valid until the episode ends. */
export const ANSWER_KEEPS_MS = 6 * HOUR_MS;
/** Duration of a refusal that only a person can change. */
export const REFUSAL_KEEPS_MS = 12 * HOUR_MS;
/** Duration of a refusal that more traffic or another request may change. */
export const REJECTION_KEEPS_MS = HOUR_MS;
export const CREDENTIALS_PAUSE_MS = 15 * MINUTE_MS;
/** Wait after a rate limit that names no time. */
export const DEFAULT_WAIT_MS = MINUTE_MS;
/** Longer than a request can take. After this time the process that asked is dead. */
export const CLAIM_MS = MINUTE_MS;
export const FIRST_BACK_OFF_MS = MINUTE_MS;
export const LONGEST_BACK_OFF_MS = 30 * MINUTE_MS;
