import { z } from "zod";
import { AiRecommendationResponse } from "./contract/ai-recommendation.ts";
import { checkRequest } from "./transport/check-request.ts";
import { type EdgeCall, WITH_BODY } from "./transport/edge-call.ts";
import { PathText, toSegment } from "./transport/path-segment.ts";
import { readAnswer } from "./transport/read-answer.ts";
import type { EdgeTransport } from "./transport/transport.ts";

/** The ids are int64 here, unlike in every other operation. */
const Params = z.strictObject({ shieldZoneId: z.int().min(1), ruleId: PathText });

/**
 * Returns the AI's advice on a triggered rule; platform API spec 4.10. The platform generates it on each call, which
 * takes seconds, so do not call this in bulk. Without the plan for it: EDGE_PLAN, sent with status 202.
 */
export async function getRecommendation(
  transport: EdgeTransport,
  params: { shieldZoneId: number; ruleId: string },
  signal?: AbortSignal,
): Promise<AiRecommendationResponse> {
  const { shieldZoneId, ruleId } = checkRequest("get-recommendation", Params, params);
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
