export interface RateLimiterOptions {
  /** What a full window lets through, all at once if need be. */
  readonly quota: number;
  readonly windowMs: number;
  /** Keys that are remembered; of more the longest known are forgotten. */
  readonly maxKeys: number;
}

export interface Taken {
  readonly isAllowed: boolean;
  readonly remaining: number;
  /** Until the quota is whole again. */
  readonly resetMs: number;
  /** Until the next one is let through; 0 where this one was. */
  readonly retryAfterMs: number;
}

/**
 * Lets `quota` through per window and key, refilled evenly (GCRA): one number per key, the time at which its quota is
 * whole again. What is refused costs nothing, so that whoever keeps asking is let in as soon as anybody.
 */
export function createRateLimiter({ quota, windowMs, maxKeys }: RateLimiterOptions) {
  const stepMs = windowMs / quota;
  const fullAt = new Map<string, number>();

  function forgetIdle(nowMs: number): void {
    for (const [key, at] of fullAt) if (at <= nowMs) fullAt.delete(key);
    // Still too many: an attacker with as many addresses gains a fresh quota each either way. A tenth at once, or each
    // further one would look through all of them.
    for (const key of fullAt.keys()) {
      if (fullAt.size < maxKeys * 0.9) return;
      fullAt.delete(key);
    }
  }

  return {
    take(key: string, nowMs: number): Taken {
      const known = fullAt.get(key);
      if (known === undefined && fullAt.size >= maxKeys) forgetIdle(nowMs);
      // Never more than a window, should the clock have been set back.
      const spentMs = Math.min(Math.max((known ?? nowMs) - nowMs, 0), windowMs);
      const isAllowed = spentMs + stepMs <= windowMs + 1e-6;
      const resetMs = isAllowed ? spentMs + stepMs : spentMs;
      if (isAllowed) fullAt.set(key, nowMs + resetMs);
      return {
        isAllowed,
        remaining: Math.max(0, Math.floor((windowMs - resetMs) / stepMs + 1e-6)),
        resetMs,
        retryAfterMs: isAllowed ? 0 : spentMs + stepMs - windowMs,
      };
    },
    /** Keys that are remembered now. */
    size: () => fullAt.size,
  };
}
