import { expect, test } from "vitest";
import { classifyAdvice } from "#alerts/rules/advice/advice-status.ts";
import { HOUR_MS } from "#lib/units.ts";

test.each([
  ["limit_reached.ai_recommendation", { kind: "refused", scope: "zone", keepsMs: 12 * HOUR_MS }],
  ["invalid_plan_type.waf", { kind: "refused", scope: "zone", keepsMs: 12 * HOUR_MS }],
  ["EDGE_PLAN", { kind: "refused", scope: "zone", keepsMs: 12 * HOUR_MS }],
  ["not_found_or_unauthorised_access.shieldzone", { kind: "refused", scope: "zone", keepsMs: 12 * HOUR_MS }],
  ["not_found_or_unauthorised_access.waf_rule", { kind: "refused", scope: "rule", keepsMs: 12 * HOUR_MS }],
  ["not_found.waf_rule", { kind: "refused", scope: "rule", keepsMs: 12 * HOUR_MS }],
  ["EDGE_NOT_FOUND", { kind: "refused", scope: "rule", keepsMs: 12 * HOUR_MS }],
  ["not_enough_data.ai_recommendation", { kind: "refused", scope: "rule", keepsMs: HOUR_MS }],
  ["EDGE_INVALID_REQUEST", { kind: "refused", scope: "rule", keepsMs: HOUR_MS }],
  ["EDGE_UNAUTHORIZED", { kind: "refused", scope: "account", keepsMs: HOUR_MS / 4 }],
  ["EDGE_FORBIDDEN", { kind: "refused", scope: "account", keepsMs: HOUR_MS / 4 }],
  ["EDGE_RATE_LIMITED", { kind: "paused", scope: "account", keepsMs: 60_000 }],
  ["EDGE_RATE_LIMITED.7000", { kind: "paused", scope: "account", keepsMs: 7_000 }],
  ["EDGE_UNAVAILABLE.90000", { kind: "paused", scope: "account", keepsMs: 90_000 }],
  ["EDGE_UNAVAILABLE", { kind: "failed" }],
  ["EDGE_TIMEOUT", { kind: "failed" }],
  ["EDGE_NETWORK", { kind: "failed" }],
  ["EDGE_MALFORMED", { kind: "failed" }],
  ["MODEL_FAILED", { kind: "failed" }],
  ["NO_RECOMMENDATION", { kind: "nothing" }],
  ["ASKING", { kind: "asking" }],
  [null, { kind: "failed" }],
])("a stored failure %s means %o", (errorKey, outcome) => {
  expect(classifyAdvice({ success: false, errorKey })).toMatchObject(outcome);
});

test("a stored text is an answer", () => {
  expect(classifyAdvice({ success: true, errorKey: null })).toEqual({ kind: "answered" });
});
