/** Creates a token bucket of this process only. It starts empty. All times are of one monotonic clock, in ms. */
export function createLocalBucket(ratePerSecond: number, startedAt: number) {
  const burst = Math.max(1, ratePerSecond);
  let tokens = 0;
  let filledAt = startedAt;

  return {
    /** Takes up to `atMost` whole tokens. If there is none, also returns the time until the next token. */
    take(atMost: number, now: number): { granted: number; waitMs: number } {
      tokens = Math.min(burst, tokens + ((now - filledAt) / 1_000) * ratePerSecond);
      filledAt = now;
      const granted = Math.min(atMost, Math.floor(tokens));
      tokens -= granted;
      return { granted, waitMs: granted > 0 ? 0 : ((1 - tokens) / ratePerSecond) * 1_000 };
    },
  };
}
