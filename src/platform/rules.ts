/** The platform's answers about a rule: advice and daily counts. */
import { z } from "zod";
import { AiRecommendationResponse, WafRuleMetricsResponse } from "./contract/rules.ts";
import { Int32Id } from "./contract/values.ts";
import { checkRequest, type EdgeCall, PathText, toSegment, WITH_BODY } from "./transport/call.ts";
import { readAnswer } from "./transport/exchange.ts";
import type { EdgeTransport } from "./transport/transport.ts";

/** The ids are int64 here, unlike in every other operation. */
const RuleOfZone = z.strictObject({ shieldZoneId: z.int().min(1), ruleId: PathText });

/**
 * Returns the AI's advice on a triggered rule; platform API spec 4.10. The platform generates it on each call, which
 * takes seconds, so do not call this in bulk. Without the plan for it: EDGE_PLAN, sent with status 202.
 */
export async function getRecommendation(
  transport: EdgeTransport,
  params: { shieldZoneId: number; ruleId: string },
  signal?: AbortSignal,
): Promise<AiRecommendationResponse> {
  const { shieldZoneId, ruleId } = checkRequest("get-recommendation", RuleOfZone, params);
  const path = `/shield/waf/rules/review-triggered/ai-recommendation/${shieldZoneId}/${toSegment(ruleId)}`;
  const call: EdgeCall = {
    operation: "get-recommendation",
    method: "GET",
    path,
    zoneId: shieldZoneId,
    expects: "json",
    successes: WITH_BODY,
  };
  return readAnswer(AiRecommendationResponse, call, await transport.request(call, signal));
}

const MetricsOfRule = z.strictObject({
  shieldZoneId: Int32Id,
  ruleId: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
});

/** Returns the platform's own counts of a rule over 28 days; platform API spec 4.11. */
export async function getRuleMetrics(
  transport: EdgeTransport,
  params: { shieldZoneId: number; ruleId: string },
  signal?: AbortSignal,
): Promise<WafRuleMetricsResponse> {
  const { shieldZoneId, ruleId } = checkRequest("get-rule-metrics", MetricsOfRule, params);
  const path = `/shield/metrics/shield-zone/${shieldZoneId}/waf-rule/${toSegment(ruleId)}`;
  const call: EdgeCall = {
    operation: "get-rule-metrics",
    method: "GET",
    path,
    zoneId: shieldZoneId,
    expects: "json",
    successes: WITH_BODY,
  };
  return readAnswer(WafRuleMetricsResponse, call, await transport.request(call, signal));
}

/**
 * Returns a key of the 28-day overview as an ISO day (`yyyy-MM-dd`). The platform writes `dd-MM-yyyy`; ISO days and
 * date-times are accepted too. Returns null for a key that is no day of the calendar, which the caller skips.
 */
export function parseMetricsDay(key: string): string | null {
  const european = /^(\d{2})-(\d{2})-(\d{4})$/.exec(key);
  const iso =
    european === null ? /^\d{4}-\d{2}-\d{2}/.exec(key)?.[0] : `${european[3]}-${european[2]}-${european[1]}`;
  if (iso === undefined) return null;
  const at = Date.parse(`${iso}T00:00:00Z`);
  return Number.isNaN(at) || !new Date(at).toISOString().startsWith(iso) ? null : iso;
}
