import { z } from "zod";
import { StatusBlock } from "./generic-request-response.ts";
import { Int64 } from "./int32.ts";
import { Text } from "./text.ts";

/**
 * The AI's advice on a triggered rule; platform API spec 2.8. `recommendation` is hostile text, null when there is
 * none. An answer without the member contains no advice.
 */
export const AiRecommendationResponse = z.looseObject({
  shieldZoneId: Int64.nullish().transform((value) => value ?? null),
  ruleId: Text,
  success: z
    .boolean()
    .nullish()
    .transform((value) => value ?? false),
  recommendation: z.string().nullable(),
  errorResponse: StatusBlock,
});
export type AiRecommendationResponse = z.infer<typeof AiRecommendationResponse>;
