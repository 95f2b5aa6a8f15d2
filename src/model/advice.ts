/** The platform's advice on a spike, and an exclusion that is proposed for it. */

import { z } from "zod";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { EXCLUSION_FORMS } from "./kinds.ts";

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

/**
 * The requests that an exclusion keeps a rule from. Every given part must match. A template is hostile text of requests:
 * its segments are literals, or placeholders such as `{n}` (`templateOf` in the stage).
 */
const exclusionClause = z.object({
  ruleIds: z.array(z.string()).min(1),
  /** `/reviews/{n}`; null for every path. */
  template: z.string().nullable(),
  /** Upper case; null for every method. */
  method: z.string().nullable(),
  /** The parameter, header or cookie whose value matched, such as `ARGS:title`; null for any. */
  parameter: z.string().nullable(),
});
export type ExclusionClause = z.output<typeof exclusionClause>;

const share = z.number().min(0).max(1);

/** A proposal for a rule that misfires. Longwatch never applies it. */
export const exclusionProposal = z.object({
  form: z.enum(EXCLUSION_FORMS),
  ruleId: z.string(),
  /** The largest first, at most four. Empty if refused. */
  clauses: z.array(exclusionClause),
  /** Share of the alert's events that the clauses cover. */
  covered: share,
  /** Number of events that the proposal was made from. */
  events: z.number().int(),
  /** Other rules that match the same requests. Without them the requests are still blocked. */
  together: z.array(z.object({ ruleId: z.string(), parameter: z.string().nullable(), share })),
  /** Reason why there is no proposal; null if there is one. */
  refusal: z.string().nullable(),
});
export type ExclusionProposal = z.output<typeof exclusionProposal>;
