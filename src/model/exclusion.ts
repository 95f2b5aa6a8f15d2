import { z } from "zod";
import { EXCLUSION_FORMS } from "./kinds.ts";

/**
 * The requests that an exclusion keeps a rule from. Every given part must match. A template is hostile text of requests:
 * its segments are literals, or placeholders such as `{n}` (`templateOf` in the stage).
 */
const exclusionClause = z.object({
  ruleIds: z.array(z.string()).min(1),
  /** `/reviews/{n}`; null for every path. */
  template: z.string().nullable(),
  /** Upper case; null for every method. */
  method: z.string().nullable(),
  /** The parameter, header or cookie whose value matched, such as `ARGS:title`; null for any. */
  parameter: z.string().nullable(),
});
export type ExclusionClause = z.output<typeof exclusionClause>;

const share = z.number().min(0).max(1);

/** A proposal for a rule that misfires. Longwatch never applies it. */
export const exclusionProposal = z.object({
  form: z.enum(EXCLUSION_FORMS),
  ruleId: z.string(),
  /** The largest first, at most four. Empty if refused. */
  clauses: z.array(exclusionClause),
  /** Share of the alert's events that the clauses cover. */
  covered: share,
  /** Number of events that the proposal was made from. */
  events: z.number().int(),
  /** Other rules that match the same requests. Without them the requests are still blocked. */
  together: z.array(z.object({ ruleId: z.string(), parameter: z.string().nullable(), share })),
  /** Reason why there is no proposal; null if there is one. */
  refusal: z.string().nullable(),
});
export type ExclusionProposal = z.output<typeof exclusionProposal>;
