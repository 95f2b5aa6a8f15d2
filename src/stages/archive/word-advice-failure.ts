import { MODEL_FAILED, NO_RECOMMENDATION } from "#model/advice.ts";

export interface AdviceFailure {
  readonly status: number;
  readonly success: boolean;
  /** Null if the platform would send none. */
  readonly errorKey: string | null;
  readonly message: string;
}

const OWN_KEY = /^[A-Z]/;
/** Matches the platform's keys that come with HTTP 200. The others come with 202. */
const SENT_AS_SUCCESS = /^not_enough_data\./;

/**
 * Returns a failed or missing ask in the platform's form. `storedKey` is the platform's own key, one of this
 * service's in capitals, or null if the platform was never asked.
 */
export function wordAdviceFailure(storedKey: string | null): AdviceFailure {
  if (storedKey === null) {
    const message = "No recommendation for this rule is stored, and none can be asked for now.";
    return { status: 202, success: false, errorKey: "not_found.ai_recommendation", message };
  }
  // The platform had no recommendation, or its model failed. Both come without a key.
  if (storedKey === NO_RECOMMENDATION || storedKey === MODEL_FAILED)
    return { status: 200, success: storedKey === NO_RECOMMENDATION, errorKey: null, message: "" };
  if (OWN_KEY.test(storedKey)) {
    const message = "The platform could not be asked for a recommendation. Ask again later.";
    return { status: 202, success: false, errorKey: "not_available.ai_recommendation", message };
  }
  const status = SENT_AS_SUCCESS.test(storedKey) ? 200 : 202;
  return { status, success: false, errorKey: storedKey, message: worded(storedKey) };
}

function worded(key: string): string {
  if (key.startsWith("limit_reached.")) return "The limit of AI recommendations of this plan is reached.";
  if (key.startsWith("not_enough_data.")) return "There is not enough data for a recommendation.";
  if (/^not_found.*\.waf_rule$/.test(key))
    return "The WAF rule was not found, or access to it is not authorised.";
  return "The platform gave no recommendation for this rule.";
}
