/** The platform's answers about a rule: the advice of its AI, and daily counts. */
import { z } from "zod";
import { StatusBlock } from "./errors.ts";
import { Count, Int64, Text } from "./values.ts";

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

const counters = {
  totalTriggers: Count,
  blockedRequests: Count,
  loggedRequests: Count,
  challengedRequests: Count,
};

/** The four counters of one day. */
const WafRuleCounters = z.looseObject(counters);
type WafRuleCounters = z.infer<typeof WafRuleCounters>;

/** The days of the overview. A member that holds no counters is left out and affects no other. */
const Overview = z
  .record(z.string(), WafRuleCounters.nullable().catch(null))
  .nullish()
  .transform((days) => {
    const isRead = (day: [string, WafRuleCounters | null]): day is [string, WafRuleCounters] =>
      day[1] !== null;
    return Object.fromEntries(Object.entries(days ?? {}).filter(isRead));
  });

/**
 * A rule's counters; platform API spec 2.9. The keys of `overviewPastTwentyEightDays` are days as the platform writes
 * them (`dd-MM-yyyy`, elsewhere ISO): read them with parseMetricsDay. `data` is required, because null is not a count
 * of zero.
 */
export const WafRuleMetricsResponse = z.looseObject({
  data: z.looseObject({
    ...counters,
    overviewPastTwentyEightDays: Overview,
  }),
  error: StatusBlock,
});
export type WafRuleMetricsResponse = z.infer<typeof WafRuleMetricsResponse>;
