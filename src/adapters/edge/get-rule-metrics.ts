import { z } from "zod";
import { Int32Id } from "./contract/int32.ts";
import { WafRuleMetricsResponse } from "./contract/waf-rule-metrics.ts";
import { checkRequest } from "./transport/check-request.ts";
import { type EdgeCall, WITH_BODY } from "./transport/edge-call.ts";
import { toSegment } from "./transport/path-segment.ts";
import { readAnswer } from "./transport/read-answer.ts";
import type { EdgeTransport } from "./transport/transport.ts";

const Params = z.strictObject({ shieldZoneId: Int32Id, ruleId: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/) });

/** Returns the platform's own counts of a rule over 28 days; platform API spec 4.11. */
export async function getRuleMetrics(
  transport: EdgeTransport,
  params: { shieldZoneId: number; ruleId: string },
  signal?: AbortSignal,
): Promise<WafRuleMetricsResponse> {
  const { shieldZoneId, ruleId } = checkRequest("get-rule-metrics", Params, params);
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
