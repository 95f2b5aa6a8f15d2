import { z } from "zod";
import { StatusBlock } from "./generic-request-response.ts";
import { Count } from "./int32.ts";

const counters = {
  totalTriggers: Count,
  blockedRequests: Count,
  loggedRequests: Count,
  challengedRequests: Count,
};

/** The four counters of one day. */
const WafRuleCounters = z.looseObject(counters);

/**
 * A rule's counters; platform API spec 2.9. The keys of `overviewPastTwentyEightDays` are days as the platform writes
 * them (`dd-MM-yyyy`, elsewhere ISO): read them with parseMetricsDay. `data` is required: null is no count of zero.
 */
export const WafRuleMetricsResponse = z.looseObject({
  data: z.looseObject({
    ...counters,
    overviewPastTwentyEightDays: z
      .record(z.string(), WafRuleCounters)
      .nullish()
      .transform((value) => value ?? {}),
  }),
  error: StatusBlock,
});
export type WafRuleMetricsResponse = z.infer<typeof WafRuleMetricsResponse>;
