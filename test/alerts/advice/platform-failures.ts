import type { EmulatorOptions } from "#emulator/emulator.ts";
import type { FaultInput } from "#emulator/faults.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";

/** One way in which an ask fails, and how long the platform is not asked again. */
export interface Failure {
  readonly name: string;
  readonly options?: EmulatorOptions;
  readonly fault?: FaultInput;
  readonly spike?: { readonly zoneId?: number; readonly ruleId?: string };
  readonly errorKey: string | RegExp;
  /** Null: this episode asks no more. */
  readonly againAfterMs: number | null;
}

/** Every failure of the recommendation that the platform is known for, and those any call may meet. */
export const FAILURES: readonly Failure[] = [
  {
    name: "the plan does not include it",
    options: { switches: { advice: "limit-reached" } },
    errorKey: "limit_reached.ai_recommendation",
    againAfterMs: 12 * HOUR_MS,
  },
  {
    name: "there is not enough data",
    options: { switches: { advice: "not-enough-data" } },
    errorKey: "not_enough_data.ai_recommendation",
    againAfterMs: HOUR_MS,
  },
  {
    name: "the model failed without a reason",
    options: { switches: { advice: "model-failure" } },
    errorKey: "MODEL_FAILED",
    againAfterMs: MINUTE_MS,
  },
  {
    name: "the recommendation is null",
    options: { switches: { advice: "null-text" } },
    errorKey: "NO_RECOMMENDATION",
    againAfterMs: null,
  },
  {
    name: "the recommendation is empty",
    options: { switches: { advice: "empty-text" } },
    errorKey: "NO_RECOMMENDATION",
    againAfterMs: null,
  },
  {
    name: "the rule is unknown",
    spike: { ruleId: "999999" },
    errorKey: "not_found_or_unauthorised_access.waf_rule",
    againAfterMs: 12 * HOUR_MS,
  },
  {
    name: "the zone is unknown",
    spike: { zoneId: 7 },
    errorKey: "not_found_or_unauthorised_access.shieldzone",
    againAfterMs: 12 * HOUR_MS,
  },
  {
    name: "too many requests, with seconds",
    fault: { kind: "rate-limit", seconds: 300 },
    errorKey: "EDGE_RATE_LIMITED.300000",
    againAfterMs: 300_000,
  },
  {
    name: "too many requests, with a date",
    fault: { kind: "rate-limit", seconds: 300, retryAfter: "date" },
    // Measured against the answer's own Date header where there is one.
    errorKey: /^EDGE_RATE_LIMITED\.\d+$/,
    againAfterMs: 15 * MINUTE_MS,
  },
  {
    name: "too many requests, without a time",
    fault: { kind: "rate-limit", retryAfter: "none" },
    errorKey: "EDGE_RATE_LIMITED.1000",
    againAfterMs: 1_000,
  },
  {
    name: "503",
    fault: { kind: "status", status: 503 },
    errorKey: "EDGE_UNAVAILABLE",
    againAfterMs: MINUTE_MS,
  },
  {
    name: "502 with a page of HTML",
    fault: { kind: "status", status: 502, body: "html" },
    errorKey: "EDGE_UNAVAILABLE",
    againAfterMs: MINUTE_MS,
  },
  {
    name: "500 with nothing",
    fault: { kind: "status", status: 500, body: "empty" },
    errorKey: "EDGE_UNAVAILABLE",
    againAfterMs: MINUTE_MS,
  },
  {
    name: "the access key is refused",
    fault: { kind: "unauthorized" },
    errorKey: "EDGE_UNAUTHORIZED",
    againAfterMs: 15 * MINUTE_MS,
  },
  {
    name: "a 401 that is a rejected request",
    fault: { kind: "unauthorized", errorKey: "odd.key" },
    errorKey: "odd.key",
    againAfterMs: HOUR_MS,
  },
  {
    name: "a failure inside a 202",
    fault: { kind: "envelope", errorKey: "invalid_plan_type.waf" },
    errorKey: "invalid_plan_type.waf",
    againAfterMs: 12 * HOUR_MS,
  },
  {
    name: "half an answer",
    fault: { kind: "truncated-body" },
    errorKey: /^EDGE_(?:MALFORMED|NETWORK)$/,
    againAfterMs: MINUTE_MS,
  },
  {
    name: "a cut connection",
    fault: { kind: "cut-socket", at: "headers" },
    errorKey: "EDGE_NETWORK",
    againAfterMs: MINUTE_MS,
  },
];
