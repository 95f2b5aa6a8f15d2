import {
  type AdviceRow,
  ASKING,
  CREDENTIALS_PAUSE_MS,
  DEFAULT_WAIT_MS,
  MODEL_FAILED,
  NO_RECOMMENDATION,
  REFUSAL_KEEPS_MS,
  REJECTION_KEEPS_MS,
} from "#model/advice.ts";

/**
 * The outcome of an ask. `answered` and `nothing` settle an episode. `refused` holds for a while and for a scope.
 * `paused` says nothing about the rule, only that the platform may not be asked now. `failed` is tried again with
 * back-off.
 */
export type AdviceOutcome =
  | { readonly kind: "answered" }
  | { readonly kind: "nothing" }
  | { readonly kind: "asking" }
  | {
      readonly kind: "refused" | "paused";
      /** The rules that the answer also applies to: a plan applies to a zone, a key or a rate limit to the account. */
      readonly scope: "rule" | "zone" | "account";
      readonly keepsMs: number;
      readonly reason: string;
    }
  | { readonly kind: "failed"; readonly reason: string };

const PLAN_KEY = /^(?:invalid_plan_type|limit_reached|feature_not_available)/i;
const UNKNOWN_ZONE_KEY = /^not_found.*\.shieldzone$/i;
const UNKNOWN_RULE_KEY = /^not_found|\.not_found$/i;
const OWN_KEY = /^(EDGE_[A-Z_]+)(?:\.(\d+))?$/;
const TRANSIENT = new Set(["EDGE_UNAVAILABLE", "EDGE_TIMEOUT", "EDGE_NETWORK", "EDGE_MALFORMED"]);

function refused(scope: "rule" | "zone" | "account", keepsMs: number, reason: string): AdviceOutcome {
  return { kind: "refused", scope, keepsMs, reason };
}

function classifyOwnKey(code: string, waitMs: number | null): AdviceOutcome | null {
  if (code === "EDGE_RATE_LIMITED" || waitMs !== null) {
    const keepsMs = waitMs ?? DEFAULT_WAIT_MS;
    return { kind: "paused", scope: "account", keepsMs, reason: "the platform asked Longwatch to wait" };
  }
  if (code === "EDGE_UNAUTHORIZED" || code === "EDGE_FORBIDDEN")
    return refused("account", CREDENTIALS_PAUSE_MS, "the platform refused the access key");
  if (code === "EDGE_PLAN")
    return refused("zone", REFUSAL_KEEPS_MS, "the zone's plan does not include recommendations");
  if (code === "EDGE_NOT_FOUND")
    return refused("rule", REFUSAL_KEEPS_MS, "the platform does not know the rule");
  return TRANSIENT.has(code) ? { kind: "failed", reason: `the platform did not answer (${code})` } : null;
}

/** Reads a stored ask; upstream facts on the recommendation's failures. A key of unknown meaning is a rejection. */
export function classifyAdvice(row: Pick<AdviceRow, "success" | "errorKey">): AdviceOutcome {
  if (row.success) return { kind: "answered" };
  const key = row.errorKey ?? MODEL_FAILED;
  if (key === NO_RECOMMENDATION) return { kind: "nothing" };
  if (key === ASKING) return { kind: "asking" };
  if (key === MODEL_FAILED) return { kind: "failed", reason: "the platform's AI model failed" };
  const own = OWN_KEY.exec(key);
  const outcome = own === null ? null : classifyOwnKey(own[1] ?? "", own[2] ? Number(own[2]) : null);
  if (outcome !== null) return outcome;
  if (PLAN_KEY.test(key))
    return refused("zone", REFUSAL_KEEPS_MS, `the zone's plan does not allow this recommendation (${key})`);
  if (UNKNOWN_ZONE_KEY.test(key))
    return refused("zone", REFUSAL_KEEPS_MS, `the platform does not know the zone (${key})`);
  if (UNKNOWN_RULE_KEY.test(key))
    return refused("rule", REFUSAL_KEEPS_MS, `the platform does not know the rule (${key})`);
  return refused("rule", REJECTION_KEEPS_MS, `the platform rejected the request (${key})`);
}
