import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";

/** One ask of the platform without its text. */
export interface AdviceRow {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly askedAtMs: number;
  /** True only if there is a text to show. */
  readonly success: boolean;
  /**
   * Null exactly on success. Otherwise the platform's own key if it sent one, else one of this service's in capitals.
   */
  readonly errorKey: string | null;
}

/** The members of a spike that decide about advice. */
export interface AdvisedSpike {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly openedAtMs: number;
}

/**
 * Error key of an ask that is not answered yet. The row is stored before the call: it counts in the budget and
 * remains if the asker is killed.
 */
export const ASKING = "ASKING";
/** The platform answered without a recommendation. */
export const NO_RECOMMENDATION = "NO_RECOMMENDATION";
/** The platform reported a failure without a reason. */
export const MODEL_FAILED = "MODEL_FAILED";

/** An answer is valid for every episode that opens this soon after it, and then for as long as the episode lasts. */
export const ANSWER_KEEPS_MS = 6 * HOUR_MS;
/** How long a refusal stays in force that only a person can change. */
export const REFUSAL_KEEPS_MS = 12 * HOUR_MS;
/** How long a refusal stays in force that more traffic or another request may change. */
export const REJECTION_KEEPS_MS = HOUR_MS;
export const CREDENTIALS_PAUSE_MS = 15 * MINUTE_MS;
/** The wait after a rate limit without a time. */
export const DEFAULT_WAIT_MS = MINUTE_MS;
/** Longer than an ask can take. After that the asker is dead. */
export const CLAIM_MS = MINUTE_MS;
export const FIRST_BACK_OFF_MS = MINUTE_MS;
export const LONGEST_BACK_OFF_MS = 30 * MINUTE_MS;
