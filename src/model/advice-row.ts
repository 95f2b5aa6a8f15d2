import { HOUR_MS, MINUTE_MS } from "../lib/units.ts";

/** One ask of the platform as far as deciding needs it; the text stays in the database. */
export interface AdviceRow {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly askedAtMs: number;
  /** True only where there is a text to show. */
  readonly success: boolean;
  /** Null exactly on success: the platform's own key where it gave one, else one of this service's in capitals. */
  readonly errorKey: string | null;
}

/** As much of a spike as deciding about advice needs. */
export interface AdvisedSpike {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly openedAtMs: number;
}

/** Stored before the call: it is the budget's entry, and what an asker leaves behind that was killed. */
export const ASKING = "ASKING";
/** The platform answered and had nothing to say. */
export const NO_RECOMMENDATION = "NO_RECOMMENDATION";
/** The platform said that it failed, without a reason. */
export const MODEL_FAILED = "MODEL_FAILED";

/** An answer is good for every episode that opens this soon after it, and then for as long as the episode lasts. */
export const ANSWER_KEEPS_MS = 6 * HOUR_MS;
/** How long a refusal that only a person can change stays in force. */
export const REFUSAL_KEEPS_MS = 12 * HOUR_MS;
/** Refusals that more traffic or another request may change. */
export const REJECTION_KEEPS_MS = HOUR_MS;
export const CREDENTIALS_PAUSE_MS = 15 * MINUTE_MS;
/** A rate limit that came without a time. */
export const DEFAULT_WAIT_MS = MINUTE_MS;
/** Longer than an ask can take; after that its asker is dead. */
export const CLAIM_MS = MINUTE_MS;
export const FIRST_BACK_OFF_MS = MINUTE_MS;
export const LONGEST_BACK_OFF_MS = 30 * MINUTE_MS;
