import { z } from "zod";
import { StatusBlock } from "./generic-request-response.ts";
import { requireMember } from "./require-member.ts";
import { OptionalText, Text } from "./text.ts";

/** The AI's advice on a triggered rule; platform API spec 2.8. `recommendation` is hostile text, null when there is none. */
export const AiRecommendationResponse = z.preprocess(
  requireMember("recommendation"),
  z.looseObject({
    shieldZoneId: z
      .int()
      .nullish()
      .transform((value) => value ?? null),
    ruleId: Text,
    success: z
      .boolean()
      .nullish()
      .transform((value) => value ?? false),
    recommendation: OptionalText,
    errorResponse: StatusBlock,
  }),
);
export type AiRecommendationResponse = z.infer<typeof AiRecommendationResponse>;
