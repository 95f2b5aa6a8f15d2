import { MINUTE_MS } from "#lib/units.ts";

/** Largest share of the request budget that the newest minutes of all zones may take, at one search per poll. */
const POLL_SHARE = 0.6;
/** Largest share of the short list passes, at one page per pass. The rest of the budget is left to the proof. */
const SHORT_PASS_SHARE = 0.1;
/** Largest share of further polls of zones in which something rises. */
const RISING_SHARE = 0.1;
/** Largest share of the comparisons that look for late events, at one search per comparison. */
const LATE_SHARE = 0.05;
/** Late events are looked for at least so often: every ten minutes, less what a tick may come too early. */
const LATE_MS = 9.5 * MINUTE_MS;
/** Pause between two polls of such a zone: that of the sweep. */
const RISING_EVERY_MS = 10_000;
/** At every second tick: ticks are a minute apart, and a pass begins shortly after its tick. */
const SHORT_PASS_MS = 90_000;

interface PollSchedule {
  readonly zones: number;
  readonly requestsPerSecond: number;
  /** Pauses between two runs of the tick that polls. */
  readonly shortestMs: number;
  readonly longestMs: number;
}

/**
 * Returns how many zones one run of the tick polls, how many requests the polls of rising zones between two ticks may take
 * every ten seconds (none if the tick is as often), how long a zone waits at most for its next poll, how old its newest
 * minutes are then at least, how often its list gets a short pass, and how often late events are looked for. With many zones
 * polls, passes and looks are rarer, so that the requests fit into the budget.
 */
export function planPeriods({ zones, requestsPerSecond, shortestMs, longestMs }: PollSchedule) {
  const mostPolls = Math.max(1, Math.floor((requestsPerSecond * POLL_SHARE * shortestMs) / 1_000));
  const mostRising = Math.max(1, Math.floor((requestsPerSecond * RISING_SHARE * RISING_EVERY_MS) / 1_000));
  const passMs = Math.ceil(zones / (requestsPerSecond * SHORT_PASS_SHARE)) * 1_000;
  return {
    mostPolls,
    risingRequests: longestMs > RISING_EVERY_MS ? mostRising : 0,
    pollEveryMs: Math.max(1, Math.ceil(zones / mostPolls)) * longestMs,
    freshMs: shortestMs / 2,
    shortPassEveryMs: Math.max(SHORT_PASS_MS, passMs),
    lateEveryMs: Math.min(LATE_MS, Math.ceil(zones / (requestsPerSecond * LATE_SHARE)) * 1_000),
  };
}
