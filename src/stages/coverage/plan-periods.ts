/** Largest share of the request budget that the newest minutes of all zones may take, at one search per poll. */
const POLL_SHARE = 0.6;
/** Largest share of the short list passes, at one page per pass. The rest of the budget is left to the proof. */
const SHORT_PASS_SHARE = 0.1;
/** At every second tick: ticks are a minute apart, and a pass begins shortly after its tick. */
const SHORT_PASS_MS = 90_000;

interface RequestedPeriods {
  readonly zones: number;
  readonly requestsPerSecond: number;
  /** The configured period. */
  readonly pollEveryMs: number;
}

/**
 * Returns how often each zone is polled and how often its list gets a short pass. With many zones both are rarer than
 * configured, so that the requests fit into the budget and the lag of every zone stays near the period.
 */
export function planPeriods({ zones, requestsPerSecond, pollEveryMs }: RequestedPeriods): {
  pollEveryMs: number;
  shortPassEveryMs: number;
} {
  const seconds = (share: number) => Math.ceil(zones / (requestsPerSecond * share)) * 1_000;
  return {
    pollEveryMs: Math.max(pollEveryMs, seconds(POLL_SHARE)),
    shortPassEveryMs: Math.max(SHORT_PASS_MS, seconds(SHORT_PASS_SHARE)),
  };
}
