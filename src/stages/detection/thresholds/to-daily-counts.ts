import type { WafRuleMetricsResponse } from "#adapters/edge/contract/rules.ts";
import { parseMetricsDay } from "#adapters/edge/rules.ts";

/** The platform's counts of a rule on one UTC day. */
export interface DailyCounts {
  /** `yyyy-MM-dd`. */
  readonly day: string;
  readonly total: number;
  readonly blocked: number;
  readonly logged: number;
  readonly challenged: number;
}

/** Returns the days of an answer. Skips keys that are no day. If a day occurs twice, the greater count wins. */
export function toDailyCounts({ data }: Pick<WafRuleMetricsResponse, "data">): DailyCounts[] {
  const days = new Map<string, DailyCounts>();
  for (const [key, counters] of Object.entries(data.overviewPastTwentyEightDays)) {
    const day = parseMetricsDay(key);
    const { totalTriggers: total, blockedRequests, loggedRequests, challengedRequests } = counters;
    if (day === null || (days.get(day)?.total ?? -1) >= total) continue;
    days.set(day, {
      day,
      total,
      blocked: blockedRequests,
      logged: loggedRequests,
      challenged: challengedRequests,
    });
  }
  return [...days.values()];
}
